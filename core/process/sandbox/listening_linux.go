package sandbox

import (
	"errors"
	"slices"
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

// listen makes a listen call. In the server's network, it refuses a port on which another program listens, even on a
// different address. Clients could otherwise mistake the app for that program: a client that connects to localhost
// tries ::1 first. listenBeside checks the port again, because the app could have changed it after the first check.
func (b *Broker) listen(n notification) error {
	s, err := b.ownSocket(n)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s.fd) }()
	if !b.mayListen(s) {
		return unix.EADDRINUSE
	}
	listen := func() error {
		return onOwnThread(b.becomeApp, func() error { return unix.Listen(s.fd, int(int32(n.args[1]))) })
	}
	if b.private {
		err = listen()
	} else {
		b.own.add(s.inode()) // before another listen call of the app looks for it
		err = b.listenBeside(s, listen)
	}
	b.ports.open(s.fd)
	return err
}

// listenBeside makes a listen call in the server's network. Nobody can connect until the port has been checked again.
// If the kernel chooses the port, it may choose one on which another program listens, on a different address.
// listenBeside then lets it choose again.
func (b *Broker) listenBeside(s appSocket, listen func() error) error {
	for try := 0; ; try++ {
		chosen := localPort(s.fd) == 0
		open := closeTo(s)
		err := listen()
		if err != nil || b.mayListen(s) {
			open()
			return err
		}
		err = errors.Join(unix.EADDRINUSE, unix.Shutdown(s.fd, unix.SHUT_RDWR))
		open()
		if !chosen || try == 3 {
			return err
		}
	}
}

// mayListen reports whether the port of a socket is in the app's network, or belongs to no other program.
func (b *Broker) mayListen(s appSocket) bool {
	port := localPort(s.fd)
	if b.private || port == 0 {
		return true
	}
	return !slices.Contains(b.taken, port) && b.own.mayAdd(s.inode(), uint16(port))
}
