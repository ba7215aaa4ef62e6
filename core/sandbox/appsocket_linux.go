package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxAddress bounds the address of a connect; the kernel's struct sockaddr_storage has 128 bytes.
const maxAddress = 128

// readMemory copies bytes of another process.
func readMemory(pid int, at, length uintptr) ([]byte, error) {
	if length > maxAddress {
		return nil, unix.EINVAL
	}
	if length == 0 {
		return nil, nil
	}
	raw := make([]byte, length)
	local := []unix.Iovec{{Base: &raw[0], Len: uint64(length)}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: int(length)}}, 0)
	if err != nil {
		return nil, err
	}
	return raw[:n], nil
}

// appSocket is a socket of the app, by a descriptor of the broker's own: what the app does with its
// descriptor does not change which socket this is.
type appSocket struct {
	fd           int
	domain, kind int
	private      bool // lies in the app's network namespace
}

func (b *Broker) appSocket(n notification) (s appSocket, err error) {
	pidfd, err := unix.PidfdOpen(int(n.pid), unix.PIDFD_THREAD)
	if err != nil {
		return s, err
	}
	defer func() { _ = unix.Close(pidfd) }()
	if !b.valid(n) {
		return s, unix.ESRCH // the id belongs to another thread now
	}
	if s.fd, err = unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0); err != nil {
		return s, err
	}
	if s.domain, err = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil {
		s.kind, err = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	}
	if err != nil {
		_ = unix.Close(s.fd)
		return s, err
	}
	cookie, err := unix.GetsockoptUint64(s.fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	s.private = err == nil && b.private && cookie == b.cookie
	return s, nil
}

// connectRaw connects a socket to an address in the kernel's form.
func connectRaw(fd int, address []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	if errno != 0 {
		return errno
	}
	return nil
}

// tcpSynSent is the state of a socket that is being connected, as in the kernel's tcp_states.h.
const tcpSynSent = 2

// replace connects a socket of the server's network and puts it in the place of the app's.
func (b *Broker) replace(n notification, s appSocket, address []byte) error {
	if s.domain != unix.AF_INET && s.domain != unix.AF_INET6 {
		return unix.EAFNOSUPPORT
	}
	if info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && info.State == tcpSynSent {
		return unix.EALREADY
	}
	if _, err := unix.Getpeername(s.fd); err == nil {
		return unix.EISCONN
	}
	fd, err := unix.Socket(s.domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	copyOptions(s, fd)
	status, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	nonblocking := status&unix.O_NONBLOCK != 0
	result := connectRaw(fd, address)
	if !nonblocking && errors.Is(result, unix.EINPROGRESS) {
		result = b.await(n, fd)
	}
	if result != nil && !errors.Is(result, unix.EINPROGRESS) {
		return result
	}
	if !nonblocking {
		if err := unix.SetNonblock(fd, false); err != nil {
			return err
		}
	}
	r := replacement{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, source: uint32(fd), target: uint32(n.args[0]),
		fileFlags: closeOnExec(n),
	}
	if errno := b.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&r)); errno != 0 {
		return errno
	}
	return result
}

// await waits until a connection is made or has failed, as long as the app waits for it.
func (b *Broker) await(n notification, fd int) error {
	for b.valid(n) {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 1000)
		if errors.Is(err, unix.EINTR) || err == nil && ready == 0 {
			continue
		}
		if err != nil {
			return err
		}
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		return err
	}
	return unix.EINTR
}

// copyOptions gives a socket the options that programs set before they connect.
func copyOptions(from appSocket, to int) {
	options := [][2]int{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
	}
	if from.domain == unix.AF_INET6 {
		options = append(options, [2]int{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY})
	}
	for _, o := range options {
		was, err := unix.GetsockoptInt(from.fd, o[0], o[1])
		if now, err2 := unix.GetsockoptInt(to, o[0], o[1]); err == nil && err2 == nil && was != now {
			_ = unix.SetsockoptInt(to, o[0], o[1], was)
		}
	}
}

// closeOnExec is the flag of the app's descriptor.
func closeOnExec(n notification) uint32 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/fdinfo/%d", n.pid, int32(n.args[0])))
	if err != nil {
		return unix.O_CLOEXEC
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 64)
			if err == nil {
				return uint32(flags) & unix.O_CLOEXEC
			}
		}
	}
	return unix.O_CLOEXEC
}

// connectUnix connects a socket to a path below a directory of the app. Abstract names are the app's own
// in a network namespace of its own, and closed without.
func (b *Broker) connectUnix(n notification, s appSocket, address []byte) error {
	if s.domain != unix.AF_UNIX {
		return unix.EINVAL
	}
	path, _, _ := strings.Cut(string(address[2:]), "\x00")
	if path == "" {
		if !b.private {
			return unix.EACCES
		}
		return connectRaw(s.fd, address)
	}
	if !filepath.IsAbs(path) {
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", n.pid))
		if err != nil {
			return unix.EACCES
		}
		path = filepath.Join(cwd, path)
	}
	if err := b.becomeApp(); err != nil {
		return err
	}
	for _, root := range b.roots {
		rest, err := filepath.Rel(root, filepath.Clean(path))
		if err != nil || !filepath.IsLocal(rest) {
			continue
		}
		return connectBeneath(s.fd, root, rest)
	}
	return unix.EACCES
}

// connectBeneath connects to a path that must not leave root, also not through a link.
func connectBeneath(socket int, root, path string) error {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if root != "/" {
		how.Resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS
	}
	fd, err := unix.Openat2(dir, path, &how)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Connect(socket, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(fd)})
}
