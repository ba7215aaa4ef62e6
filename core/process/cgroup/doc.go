// Package cgroup bounds process trees by control groups (version 2) of the server's own.
//
// The server may make groups where its own group was delegated to it: by Delegate= of its systemd unit, or
// as the root of a container whose cgroup file system is writable. Take makes two groups there:
//
//	server      the server's own processes, since a group with controllers for others has none itself
//	apps        what bounds all apps together
//	apps/NAME   one process tree, put there by the kernel when its first process is made
//
// The kernel keeps each tree to its memory, its threads and its processor time, and ends it whole, whatever
// its processes did to hide. Without a delegated group, package process measures the trees instead.
//
// The files are read and written here rather than by a library: the common one (containerd/cgroups) adds 1.4 MB
// to the executable, with clients of D-Bus and eBPF, for what takes ten kinds of files.
package cgroup
