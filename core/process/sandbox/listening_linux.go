package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// inode returns the number that identifies the socket in /proc/net/tcp, or "" if it cannot be read.
func (s appSocket) inode() string {
	var file unix.Stat_t
	if unix.Fstat(s.fd, &file) != nil {
		return ""
	}
	return strconv.FormatUint(file.Ino, 10)
}

// closeTo makes the kernel drop all packets for a TCP socket that does not listen yet, until open is called.
func closeTo(s appSocket) (open func()) {
	listens, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || listens != 0 || s.domain == unix.AF_UNIX {
		return func() {}
	}
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	if unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop}) != nil {
		return func() {}
	}
	return func() { _ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) }
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
