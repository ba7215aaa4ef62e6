package sandbox

import (
	"bufio"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The default system call filters of container runtimes do not allow pidfd_getfd. The broker then cannot use the app's
// own socket. It creates a twin: an unconnected socket of the same kind, which it connects and puts in place of the
// app's. Options and a local address that the app has set before are lost.

// mayTakeDescriptors reports whether the server may take descriptors from other processes.
func mayTakeDescriptors() bool {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(pidfd) }()
	fd, err := unix.PidfdGetfd(pidfd, pidfd, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// twin creates a socket of the same kind as the app's.
func (b *Broker) twin(n notification) (appSocket, error) {
	var name [32]byte
	length, err := unix.Getxattr(appDescriptor(n), "system.sockprotoname", name[:])
	if err != nil {
		return appSocket{}, unix.ENOTSOCK
	}
	flags := appFlags(n)
	if !b.valid(n) {
		return appSocket{}, unix.ESRCH // the id belongs to another thread now
	}
	s := appSocket{twin: true}
	if s.domain, s.kind = socketKind(strings.TrimRight(string(name[:length]), "\x00")); s.domain == unix.AF_UNSPEC {
		return s, unix.EOPNOTSUPP
	}
	err = onOwnThread(b.becomeApp, func() (err error) { // the socket belongs to the user who creates it
		s.fd, err = unix.Socket(s.domain, s.kind|unix.SOCK_CLOEXEC|int(flags&unix.O_NONBLOCK), 0)
		return err
	})
	if err == nil && s.kind == unix.SOCK_STREAM && s.domain != unix.AF_UNIX { // most programs set these
		err = errors.Join(unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1))
	}
	return s, err
}

// socketKind returns the domain and type of sockets of a protocol, by the kernel's name for it, or AF_UNSPEC.
func socketKind(protocol string) (domain, kind int) {
	switch protocol {
	case "TCP", "MPTCP":
		return unix.AF_INET, unix.SOCK_STREAM
	case "TCPv6", "MPTCPv6":
		return unix.AF_INET6, unix.SOCK_STREAM
	case "UDP":
		return unix.AF_INET, unix.SOCK_DGRAM
	case "UDPv6":
		return unix.AF_INET6, unix.SOCK_DGRAM
	case "UNIX-STREAM":
		return unix.AF_UNIX, unix.SOCK_STREAM
	case "UNIX": // or SOCK_DGRAM, which apps may not use
		return unix.AF_UNIX, unix.SOCK_SEQPACKET
	}
	return unix.AF_UNSPEC, 0
}

// connectable returns the kernel's error for connecting a TCP socket that already has a connection. It checks this only
// for a twin. For the app's own socket, the kernel does.
func (b *Broker) connectable(n notification, s appSocket) (failed error) {
	if !s.twin || s.kind != unix.SOCK_STREAM {
		return nil
	}
	inode, err := socketInode(n)
	if err != nil {
		return err
	}
	err = eachSocket(func(socket tcpSocket) {
		switch {
		case socket.inode != inode:
		case socket.state == "02": // TCP_SYN_SENT
			failed = unix.EALREADY
		default:
			failed = unix.EISCONN
		}
	})
	return errors.Join(failed, err)
}

// socketInode returns the number that identifies the app's socket.
func socketInode(n notification) (string, error) {
	target, err := os.Readlink(appDescriptor(n))
	if err != nil {
		return "", unix.EBADF
	}
	inode, ok := strings.CutPrefix(strings.TrimSuffix(target, "]"), "socket:[")
	if !ok {
		return "", unix.ENOTSOCK
	}
	return inode, nil
}

// tcpSocket is a line of proc_pid_net(5).
type tcpSocket struct{ local, state, inode string }

// eachSocket visits the TCP sockets of the server's network that are connected, connecting or listening.
func eachSocket(visit func(tcpSocket)) error {
	const localField, stateField, inodeField = 1, 3, 9
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		file, err := os.Open(table)
		if errors.Is(err, os.ErrNotExist) { // a machine without IPv6
			continue
		}
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if fields := strings.Fields(lines.Text()); len(fields) > inodeField {
				visit(tcpSocket{fields[localField], fields[stateField], fields[inodeField]})
			}
		}
		_ = file.Close()
		if lines.Err() != nil {
			return lines.Err()
		}
	}
	return nil
}
