package listener

import "syscall"

const (
	mostConns  = 16384 // connections, whatever the limit on descriptors
	leastConns = 64
)

// DefaultMaxConns leaves a quarter of the process's file descriptors, at least 128, for everything
// that is not a connection: apps, plugins, databases and files. The Go runtime has raised the soft
// limit to the hard one when the process started.
func DefaultMaxConns() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return mostConns
	}
	descriptors := int(min(limit.Cur, 1<<20))
	return max(leastConns, min(mostConns, descriptors-max(descriptors/4, 128)))
}
