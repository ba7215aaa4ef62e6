package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Broker makes system calls on behalf of an app when a filter cannot judge them. The kernel suspends such a call and
// reports it here. The broker copies the arguments, decides, and acts on its own copy, so an app gains nothing by
// changing the address, or the file behind the descriptor, after the check. If the broker cannot decide, it refuses the
// call.
//
// It makes every connect call. At LevelNamespaces the app's sockets are in a network namespace from which nothing can
// be reached. For a permitted TCP connection the broker connects a socket in the server's network and puts it in place
// of the app's. It also makes every bind and listen call, which are forbidden for such a socket. No datagrams leave the
// namespace; DNS queries go through the name server. At LevelLandlock the broker connects the app's own socket, or a
// twin of it. It also changes the mode, owner and times of open files, which Landlock does not check, and lets the app
// start processes: see gateForks.
type Broker struct {
	network  Network
	listener int
	queue    *os.File                           // the listener, in the runtime's poller
	calls    map[int32]func(notification) error // by system call number
	slots    chan struct{}                      // one for each call in progress

	twins   bool   // whether sockets are replaced, because the broker may not take descriptors: see twin
	private bool   // whether the app has its own network namespace
	cookie  uint64 // identifies the namespace
	uid     int    // the app's user and group, as in Profile
	group   int
	write   []string      // real paths of directories whose files belong to the app
	read    []string      // directories that it may only read; may be inside the others
	closed  []string      // hidden paths; Landlock does not check connections to the sockets there
	sockets []string      // real paths of other sockets that were granted
	rules   landlockRules // the app's Landlock rules
	names   *nameServer
	denials denials // refused connections to this machine
	ports   openPorts
	taken   []int // ports on which the app cannot listen in the server's network
	own     ownServices
	asked   askingThread // used by receive only
	pass    uint32       // lets the shim start the program itself; 0 if forks are not gated
}

// The broker's descriptors are in the shim, which has at least shimFiles of them regardless of the app's limit.
// One call uses at most callFiles.
const (
	shimFiles = 2048
	callFiles = 6
	maxCalls  = 128 // in progress for one app; more are refused
)

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

// newBroker creates the broker for the calling thread, with a network namespace at LevelNamespaces. It returns nil if
// there is nothing to decide.
func newBroker(p *Profile) (b *Broker, err error) {
	b = &Broker{network: p.Network, uid: p.UID, group: p.Group, asked: askingThread{pidfd: -1}, private: p.Level >= LevelNamespaces && p.Network.mode() != NetworkAll, taken: p.Taken, calls: map[int32]func(notification) error{}}
	b.grant(p)
	if p.Network.mode() != NetworkAll {
		b.calls[unix.SYS_CONNECT], b.calls[unix.SYS_LISTEN] = b.connect, b.listen
	}
	if p.Level < LevelNamespaces && !p.Metadata {
		b.attributes()
	}
	if p.Trace {
		b.traceOpens()
	}
	if p.Level < LevelNamespaces {
		if b.pass, err = newPass(); err != nil {
			return nil, err
		}
	}
	if len(b.calls) == 0 && b.pass == 0 {
		return nil, nil
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil, err
	}
	b.twins = !mayTakeDescriptors()
	b.slots = make(chan struct{}, max(min(maxCalls, int(min(files.Cur, shimFiles))/2/callFiles), 1)) // half is for the name server and the shim
	if !b.private {
		if b.twins && p.Network.mode() != NetworkAll {
			b.calls[unix.SYS_LISTEN] = b.noteService
		}
		return b, nil
	}
	if b.twins {
		return nil, errors.New("a system call filter, such as that of some container runtimes, does not allow pidfd_getfd")
	}
	b.calls[unix.SYS_BIND] = b.bind
	return b, b.isolate(p)
}

// isolate moves the calling thread to a new network namespace.
func (b *Broker) isolate(p *Profile) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create a network namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if b.cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
		return fmt.Errorf("identify the network namespace: %w", err)
	}
	if err := loopbackUp(fd); err != nil {
		return fmt.Errorf("set up the loopback interface: %w", err)
	}
	if p.Network.mode() != NetworkNone {
		b.names, err = newNameServer(p.nameServers, p.Network)
	}
	return err
}

// grant records which sockets the app may connect to by path: those in directories it may write to, and those granted
// by name. A directory that it may only read does not grant the sockets in it, and neither does a hidden one.
func (b *Broker) grant(p *Profile) {
	b.closed = p.closed()
	paths := slices.Clone(p.Write)
	if p.Level >= LevelNamespaces { // at this level, these belong to the app
		paths = append(paths, "/tmp", "/dev/shm")
		for _, layer := range p.Layers {
			paths = append(paths, layer.Dir)
		}
	}
	for _, path := range paths {
		if real, err := evalSymlinks(path); err == nil {
			b.write = append(b.write, real)
		}
	}
	for _, path := range p.Read {
		real, err := evalSymlinks(path)
		if err != nil {
			continue
		}
		b.read = append(b.read, real)
		if info, err := os.Lstat(real); err == nil && info.Mode()&os.ModeSocket != 0 {
			b.sockets = append(b.sockets, real)
		}
	}
}

// isOwnFile reports whether an open file is in a directory that the app may write to, and not hidden there.
func (b *Broker) isOwnFile(fd int) bool {
	path, err := os.Readlink(descriptorPath(fd))
	if err != nil {
		return false
	}
	write := nearestDir(path, b.write)
	return write > 0 && write >= nearestDir(path, b.read) && write >= nearestDir(path, b.closed)
}

func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// loopbackUp brings up the loopback interface of the calling thread's namespace. It adds an address that is not
// a loopback address, because C libraries do not look up IPv4 addresses on a machine without one.
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

// Serve answers notifications until no process of the app is left.
func (b *Broker) Serve() {
	if b.names != nil {
		b.names.serve()
	}
	if err := unix.SetNonblock(b.listener, true); err != nil {
		return
	}
	b.queue = os.NewFile(uintptr(b.listener), "seccomp listener")
	queue, err := b.queue.SyscallConn()
	if err == nil {
		_ = queue.Read(func(uintptr) bool { return b.receive() })
	}
}

// anotherRefusal is how many nanoseconds receive waits after it has refused a call. Programs often try again right
// after a refusal. Waiting on this thread is then much cheaper than suspending the goroutine, or making a system call
// after which other threads are woken: the Go scheduler does not notice such a short wait.
const anotherRefusal = 2_000_000

// receive starts the calls that wait, and reports whether no process of the app is left. Receiving a notification
// blocks if there is none, which would need a thread.
func (b *Broker) receive() (over bool) {
	var patience unix.Timespec
	for {
		waiting := unix.PollFd{Fd: int32(b.listener), Events: unix.POLLIN}
		_, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&waiting)), 1, uintptr(unsafe.Pointer(&patience)), 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if waiting.Revents&unix.POLLIN == 0 {
			return waiting.Revents != 0
		}
		patience.Nsec = 0
		var n notification
		switch errno := b.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno {
		case 0:
			if b.isFork(n) {
				b.answer(n, errContinue)
			} else if err := b.refusal(n); err == nil {
				b.start(n)
			} else {
				b.answer(n, err)
				patience.Nsec = anotherRefusal
			}
		case unix.EINTR, unix.ENOENT:
		default:
			return true
		}
	}
}

// start makes a call, unless too many are in progress.
func (b *Broker) start(n notification) {
	select {
	case b.slots <- struct{}{}:
		go func() {
			defer func() { <-b.slots }()
			act, known := b.calls[n.number]
			if !known {
				b.answer(n, unix.ENOSYS)
				return
			}
			b.answer(n, act(n))
		}()
	default:
		b.answer(n, unix.EAGAIN)
	}
}

func (b *Broker) control(request uintptr, data unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), request, uintptr(data))
	return errno
}

func (b *Broker) answer(n notification, err error) {
	r := response{id: n.id}
	switch {
	case errors.Is(err, errContinue):
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case err != nil:
		errno, ok := errors.AsType[unix.Errno](err)
		if !ok || errno == 0 {
			errno = unix.EACCES
		}
		r.errno = -int32(errno)
	}
	_ = b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // the app's thread may have ended
}

// valid reports whether the app's thread is still waiting for the answer.
func (b *Broker) valid(n notification) bool {
	return b.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) == 0
}

// connect decides on one connect call and makes the connection.
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
	err = b.connectSocket(n, socket, address)
	if socket.twin && (err == nil || errors.Is(err, unix.EINPROGRESS)) {
		if err := b.put(n, socket.fd); err != nil {
			return err
		}
	}
	return err
}

func (b *Broker) connectSocket(n notification, socket appSocket, address []byte) error {
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
		// A socket in the server's network must stay connected: unconnected, it would give the app access to that
		// network.
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
	permitted := b.network.permits(context.Background(), to, isOwnAddress, b.lookup())
	switch {
	case !b.private && permitted:
		if err := b.connectable(n, s); err != nil {
			return err
		}
		return connectRaw(s.fd, raw)
	case !b.private && s.kind == unix.SOCK_STREAM && b.own.include(to):
		return b.connectOwn(n, s, to, raw)
	case b.private && permitted && s.kind == unix.SOCK_STREAM:
		return b.replace(n, s, raw)
	case b.private && s.private: // the app's own services; everything else is unreachable from there
		err := connectRaw(s.fd, raw)
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EINPROGRESS) && hasFailed(s.fd) {
			b.denials.add(to)
		}
		return err
	}
	b.denials.add(to)
	return unix.EACCES
}

// hasFailed reports whether a connection that a socket has just started was refused. On a loopback interface that is
// known immediately.
func hasFailed(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == tcpClose
}

// OnDenied sets the function that is called occasionally with the services on this machine to which connections were
// refused (net), and with the files that a traced app opens (read or write). Call it before Serve.
func (b *Broker) OnDenied(report func(kind, target string, count int)) { b.denials.report = report }

// bind makes a bind call, unless the broker connected the socket. An app could abandon a connection in progress, and
// would then hold a socket in the server's network.
func (b *Broker) bind(n notification) error {
	address, err := readMemory(int(n.pid), uintptr(n.args[1]), uintptr(n.args[2]))
	if err != nil {
		return err
	}
	s, err := b.ownSocket(n)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s.fd) }()
	if len(address) == 0 {
		return unix.EINVAL
	}
	become := []func() error{b.becomeApp}
	if s.domain == unix.AF_UNIX { // the address may be a path, which Landlock must check
		become = []func() error{func() error { return b.becomeThread(n) }, b.rules.enter}
	}
	return onOwnThread(append(become, func() error {
		_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(s.fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
		if errno != 0 {
			return errno
		}
		return nil
	})...)
}

// ownSocket returns a socket of the app that is in its network namespace, if it has one.
func (b *Broker) ownSocket(n notification) (appSocket, error) {
	s, err := b.appSocket(n)
	if err == nil && b.private && !s.private {
		return s, errors.Join(unix.EACCES, unix.Close(s.fd))
	}
	return s, err
}

// onOwnThread calls functions, until one fails, on a thread that ends afterwards. The first is becomeApp or
// becomeThread, and the next may enter the app's Landlock domain.
func onOwnThread(steps ...func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		for _, step := range steps {
			if err := step(); err != nil {
				result <- err
				return
			}
		}
		result <- nil
	}()
	return <-result
}

// becomeApp gives the calling thread the app's credentials, for calls in which the kernel checks them or shows them to
// the peer.
func (b *Broker) becomeApp() error { return dropRights(b.uid, b.group) }

// becomeThread is like becomeApp, but also takes over the working directory and umask of the app's thread.
func (b *Broker) becomeThread(n notification) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	mask, err := fileModeMask(n)
	if err != nil {
		return err
	}
	unix.Umask(mask)
	if err := unix.Chdir(fmt.Sprintf("/proc/%d/cwd", n.pid)); err != nil {
		return err
	}
	if !b.valid(n) {
		return unix.ESRCH // the id belongs to another thread now
	}
	return dropRights(b.uid, b.group)
}

// fileModeMask returns the umask of the app's thread.
func fileModeMask(n notification) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "Umask:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 16)
			return int(mask), err
		}
	}
	return 0, unix.EACCES
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
	if len(raw) < unix.SizeofSockaddrInet6-4 { // the scope may be omitted
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), port), true
}
