package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// inode returns the number that identifies the socket in /proc/net/tcp, or "" if the kernel does not say.
func (s appSocket) inode() string {
	var file unix.Stat_t
	if unix.Fstat(s.fd, &file) != nil {
		return ""
	}
	return strconv.FormatUint(file.Ino, 10)
}

// localPort returns the port that a socket is bound to, or 0.
func localPort(fd int) int {
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0
	}
	switch address := address.(type) {
	case *unix.SockaddrInet4:
		return address.Port
	case *unix.SockaddrInet6:
		return address.Port
	}
	return 0
}
