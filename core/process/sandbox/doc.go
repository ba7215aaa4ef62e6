// Package sandbox confines the process tree of an installed app.
//
// A Profile says what an app may use: paths to read, paths to write, the network, limits, and the user
// id it runs as. The shim of package process applies it, in the process that then executes the app:
//
//   - at LevelNamespaces in user, mount, pid and IPC namespaces of its own, with a file tree that holds
//     nothing but the allowed paths, and in a network namespace of its own, from which connections are
//     made by a broker in the shim;
//   - at LevelLandlock in a Landlock domain, in which the kernel refuses everything outside the allowed
//     paths, signals to other processes and their abstract sockets;
//   - at both with a system call filter (seccomp), without capabilities, and with no_new_privs.
//
// No level needs privileges. Probe tells which level a machine gives.
//
// The package owns the mechanism. It does not know what an app is: package apps decides which paths and
// limits an app gets, from the configuration and never from the app's own manifest.
package sandbox
