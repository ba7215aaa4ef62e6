// Package process starts and stops the child processes of the server, whole process trees at a time.
//
// Every program is started by a shim: this same binary, re-executed with ShimArg. The shim adopts
// every descendant of the program (PR_SET_CHILD_SUBREAPER) and holds one end of a socket whose other
// end is the server's. It ends the whole tree when the program exits, when the server asks for it,
// and when the socket closes, which the kernel does even for a server that was killed with SIGKILL.
// A program that daemonizes (setsid, double fork) is still a descendant of its shim, so it ends too.
//
// The package owns starting, stopping and exit statuses. It does not know which protocol a program
// speaks (link), what to start (bundle, pluginhost) or when to start it again (apps). It is the only
// package of the server that starts processes.
//
// The server runs on Unix only. On systems other than Linux the shim ends the program's process
// group; a descendant that left the group survives.
package process
