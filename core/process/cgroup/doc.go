// Package cgroup limits process trees with control groups (version 2) that the server creates.
//
// The server may create groups if its own group was delegated to it: by Delegate= in its systemd unit, or as
// the root of a container with a writable cgroup file system. Take creates two groups there:
//
//	server      the server's own processes: a group that delegates controllers must not contain processes
//	apps        limits all apps together
//	apps/NAME   one process tree; the kernel puts its first process there when it is created
//
// The kernel limits each tree's memory, threads and processor time. It can also kill the whole tree at once, even if
// its processes try to hide. Without a delegated group, package process measures the trees instead.
//
// This package reads and writes the files itself. The common library (containerd/cgroups) adds 1.4 MB to the
// executable, including D-Bus and eBPF clients, and we need only ten kinds of files.
package cgroup
