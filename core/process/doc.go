// Package process starts and stops the server's child processes, always as whole process trees.
//
// Every program is started by a shim: ropewalk-shim, or this same binary with ShimArg. The shim adopts all
// descendants of the program (PR_SET_CHILD_SUBREAPER) and is connected to the server by a socket. It ends the
// whole tree when the program exits, when the server asks for it, and when the socket closes. The kernel closes
// the socket even if the server was killed with SIGKILL. A program that daemonizes (setsid, double fork) is
// still a descendant of its shim, so it ends too.
//
// The package is responsible for starting, stopping and exit statuses. It does not know which protocol a
// program speaks (link), what to start (bundle, pluginhost) or when to restart it (apps). No other package of
// the server starts processes.
//
// The server runs on Unix only. On systems other than Linux the shim ends the program's process group; a
// descendant that left the group survives.
package process
