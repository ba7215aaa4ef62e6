//go:build unix

package link

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// writeNow writes what a pipe takes without waiting and returns how much that was. An error is the
// writer's to find.
func writeNow(raw syscall.RawConn, data []byte) (n int) {
	err := raw.Write(func(fd uintptr) bool {
		written, err := unix.Write(int(fd), data)
		if err == nil {
			n = written
		}
		return true
	})
	if err != nil {
		return 0
	}
	return n
}
