package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Broker makes the connections of an app. The kernel suspends every connect of the app and reports it
// here; the broker copies the address, decides, and acts on its own copy, so that an app gains nothing
// by changing the address, or the socket behind the descriptor, after the check. In a network namespace
// it does the same with every listen: a socket of the server's network must not wait for connections.
//
// At LevelNamespaces the app's sockets lie in a network namespace that reaches nothing. For a permitted
// TCP connection the broker connects a socket of the server's network and puts it in the place of the
// app's. Datagrams never leave, except questions to the name server. At LevelLandlock the broker
// connects the app's own socket.
type Broker struct {
	network  Network
	listener int

	private bool   // the app has a network namespace of its own
	cookie  uint64 // identifies it
	uid     int    // the app's, as in Profile
	roots   []string
	names   *nameServer
}

// The kernel's structures for seccomp notifications.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		number     int32
		processor  uint32
		pointer    uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
	replacement struct {
		id                               uint64
		flags, source, target, fileFlags uint32
	}
)

// newBroker makes the broker of the calling thread, at LevelNamespaces with a network namespace.
func newBroker(p *Profile) (*Broker, error) {
	b := &Broker{network: p.Network, roots: p.Write, uid: p.UID}
	if p.Level < LevelNamespaces {
		return b, nil
	}
	b.private, b.roots = true, []string{"/"}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	if b.cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
		return nil, fmt.Errorf("identify the network namespace: %w", err)
	}
	if err := loopbackUp(fd); err != nil {
		return nil, fmt.Errorf("set up the loopback interface: %w", err)
	}
	if p.Network.mode() != NetworkNone {
		b.names, err = newNameServer(p.nameServers, p.Network)
	}
	return b, err
}

// loopbackUp starts the loopback interface of the calling thread's namespace. It gets an address that is
// not a loopback address, because C libraries look up no IPv4 addresses on a machine without one.
func loopbackUp(fd int) error {
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	alias, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr([]byte{192, 0, 2, 1}); err != nil { // TEST-NET-1, RFC 5737
		return err
	}
	return errors.Join(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up), unix.IoctlIfreq(fd, unix.SIOCSIFADDR, alias))
}

// Serve answers the notifications until no process of the app is left.
func (b *Broker) Serve() {
	if b.names != nil {
		b.names.serve()
	}
	for {
		var n notification
		errno := b.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
		switch {
		case errno == unix.EINTR || errno == unix.ENOENT:
		case errno != 0:
			return
		default:
			go b.answer(n)
		}
	}
}

func (b *Broker) control(request uintptr, data unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), request, uintptr(data))
	return errno
}

func (b *Broker) answer(n notification) {
	r := response{id: n.id}
	act := b.connect
	if n.number == unix.SYS_LISTEN {
		act = b.listen
	}
	if err := act(n); err != nil {
		errno, ok := errors.AsType[unix.Errno](err)
		if !ok {
			errno = unix.EACCES
		}
		r.errno = -int32(errno)
	}
	_ = b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// valid reports whether the app's thread still waits for the answer.
func (b *Broker) valid(n notification) bool {
	return b.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) == 0
}

// connect decides on one connect and makes the connection.
func (b *Broker) connect(n notification) error {
	address, err := readMemory(int(n.pid), uintptr(n.args[1]), uintptr(n.args[2]))
	if err != nil {
		return err
	}
	socket, err := b.appSocket(n)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket.fd) }()
	if len(address) < 2 {
		return unix.EINVAL
	}
	switch family := uint16(address[0]) | uint16(address[1])<<8; family {
	case unix.AF_INET, unix.AF_INET6:
		to, ok := parseAddress(address)
		if !ok {
			return unix.EINVAL
		}
		return b.connectInternet(n, socket, to, address)
	case unix.AF_UNIX:
		return b.connectUnix(n, socket, address)
	case unix.AF_UNSPEC:
		// A socket of the server's network must not become one without a peer.
		if b.private && !socket.private {
			return unix.EINVAL
		}
		return connectRaw(socket.fd, address)
	case unix.AF_NETLINK:
		if socket.domain != unix.AF_NETLINK {
			return unix.EINVAL
		}
		return connectRaw(socket.fd, address)
	default:
		return unix.EAFNOSUPPORT
	}
}

func (b *Broker) connectInternet(n notification, s appSocket, to netip.AddrPort, raw []byte) error {
	permitted := b.network.permits(context.Background(), to, ownAddresses(), b.lookup())
	switch {
	case !b.private && permitted:
		return connectRaw(s.fd, raw)
	case b.private && permitted && s.kind == unix.SOCK_STREAM:
		return b.replace(n, s, raw)
	case b.private && s.private: // the app's own services; everything else is unreachable from there
		return connectRaw(s.fd, raw)
	}
	return unix.EACCES
}

// listen makes a socket wait for connections, unless it is one that the broker connected: an app can let
// go of a connection that is being made, and the socket would be one of the server's network.
func (b *Broker) listen(n notification) error {
	s, err := b.appSocket(n)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s.fd) }()
	if !s.private {
		return unix.EACCES
	}
	if err := b.becomeApp(); err != nil {
		return err
	}
	return unix.Listen(s.fd, int(int32(n.args[1])))
}

// becomeApp gives the calling goroutine the rights of the app, for a call in which the kernel looks at
// them or tells them the other side. It has a thread of its own from then on, which ends with it.
func (b *Broker) becomeApp() error {
	runtime.LockOSThread()
	return dropRights(b.uid)
}

func (b *Broker) lookup() func(context.Context, string) ([]netip.Addr, error) {
	if b.names != nil {
		return b.names.lookup
	}
	return lookupHost
}

func parseAddress(raw []byte) (netip.AddrPort, bool) {
	if len(raw) < 8 {
		return netip.AddrPort{}, false
	}
	port := uint16(raw[2])<<8 | uint16(raw[3])
	if raw[0] == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port), true
	}
	if len(raw) < unix.SizeofSockaddrInet6-4 { // the scope may be left out
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), port), true
}
