// Package sandbox confines the process tree of an installed app.
//
// A Profile says what an app may use: paths to read, paths to write, the network, limits, and the user id it
// runs as. The shim of package process applies it, in the process that then executes the app:
//
//   - at LevelNamespaces in its own user, mount, PID and IPC namespaces, with a file tree that contains
//     only the allowed paths, and in its own network namespace, where a broker in the shim makes the
//     connections;
//   - at LevelLandlock in a Landlock domain, in which the kernel refuses everything outside the allowed
//     paths, signals to other processes, and their abstract sockets;
//   - at both with a system call filter (seccomp), without capabilities, and with no_new_privs.
//
// No level needs privileges. Probe reports which level a machine supports.
//
// The package provides the mechanism only. It does not know what an app is: package apps decides which paths
// and limits an app gets, from the configuration and never from the app's own manifest.
package sandbox
