// Package process runs programs so that they never outlive their purpose.
//
// Every program is started by a small shim: this same binary, re-executed with ShimArg. The shim
// adopts every descendant of the program (PR_SET_CHILD_SUBREAPER), holds one end of a socket whose
// other end is the server's, and ends the whole tree when the program exits, when it is told to,
// and when the socket closes, which the kernel does even for a server that was killed with SIGKILL.
// A program that daemonizes (setsid, double fork) is still a descendant of its shim, so it ends too.
//
// The package owns starting, stopping and exit statuses. It does not know what a program speaks
// (link), what is to be started (bundle, pluginhost) or when to start it again (apps). It is apart
// because it is the one place of the server that may start a process.
//
// On systems other than Linux the shim ends the program's process group; a descendant that left
// the group survives. On Windows there is no shim: only the program itself is ended.
package process
