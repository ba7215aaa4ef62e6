package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxAddress bounds the address passed to connect. The kernel's struct sockaddr_storage has 128 bytes.
const maxAddress = 128

// readMemory copies bytes from another process.
func readMemory(pid int, at, length uintptr) ([]byte, error) {
	return copyMemory(make([]byte, maxAddress), pid, at, length)
}

// copyMemory copies bytes from another process into raw, which has room for maxAddress bytes.
func copyMemory(raw []byte, pid int, at, length uintptr) ([]byte, error) {
	if length > maxAddress {
		return nil, unix.EINVAL
	}
	if length == 0 {
		return nil, nil
	}
	local := []unix.Iovec{{Base: &raw[0], Len: uint64(length)}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: int(length)}}, 0)
	if err != nil {
		return nil, err
	}
	return raw[:n], nil
}

// appFile opens the file that the call's first argument refers to, as a descriptor of the broker. If the broker may not
// take descriptors, the new one only names the file (O_PATH).
func (b *Broker) appFile(n notification) (int, error) {
	if b.twins {
		return b.openProc(n, "fd/"+strconv.Itoa(int(int32(n.args[0]))))
	}
	pidfd, err := unix.PidfdOpen(int(n.pid), unix.PIDFD_THREAD)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(pidfd) }()
	if !b.valid(n) {
		return 0, unix.ESRCH // the id belongs to another thread now
	}
	return unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0)
}

// openProc opens a file or directory that the app's thread uses, by its name below /proc/<pid>, without any right to
// read it.
func (b *Broker) openProc(n notification, name string) (int, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", n.pid, name), unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return 0, unix.EBADF
	}
	if err == nil && !b.valid(n) { // the id belongs to another thread now
		err = errors.Join(unix.ESRCH, unix.Close(fd))
	}
	return fd, err
}

// appSocket is a socket of the app that the broker holds through its own descriptor. It remains the same socket even if
// the app closes or replaces its own descriptor.
type appSocket struct {
	fd           int
	domain, kind int
	private      bool // is in the app's network namespace
	twin         bool // is not the app's own, but takes its place
}

func (b *Broker) appSocket(n notification) (s appSocket, err error) {
	if b.twins {
		return b.twin(n)
	}
	if s.fd, err = b.appFile(n); err != nil {
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

// connectRaw connects a socket to an address in the kernel's format.
func connectRaw(fd int, address []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Socket states as in the kernel's tcp_states.h: connecting, and not connected.
const (
	tcpSynSent = 2
	tcpClose   = 7
)

// replace connects a socket in the server's network and puts it in place of the app's socket.
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
		result = b.await(n, fd, time.Time{})
	}
	if result != nil && !errors.Is(result, unix.EINPROGRESS) {
		return result
	}
	if !nonblocking {
		if err := unix.SetNonblock(fd, false); err != nil {
			return err
		}
	}
	if err := b.put(n, fd); err != nil {
		return err
	}
	return result
}

// put replaces the app's socket with the one at fd.
func (b *Broker) put(n notification, fd int) error {
	r := replacement{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, source: uint32(fd), target: uint32(n.args[0]),
		fileFlags: appFlags(n) & unix.O_CLOEXEC,
	}
	if errno := b.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&r)); errno != 0 {
		return errno
	}
	return nil
}

// validInterval is how often await checks whether the app is still waiting for the connection.
const validInterval = time.Second

// await waits until a connection is established or has failed, or until the app no longer waits for it. It does not
// occupy a thread.
func (b *Broker) await(n notification, fd int, until time.Time) error {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(own), "connection") // non-blocking, so the Go runtime waits for it
	defer func() { _ = file.Close() }()
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	for b.valid(n) {
		deadline := time.Now().Add(validInterval)
		if !until.IsZero() && until.Before(deadline) {
			deadline = until
		}
		if err := file.SetWriteDeadline(deadline); err != nil {
			return err
		}
		code, failed := 0, error(nil)
		err := raw.Write(func(fd uintptr) bool {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err == nil && info.State == tcpSynSent {
				return false
			}
			if failed = err; failed == nil {
				code, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
			}
			return true
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && deadline.Equal(until):
			return unix.EAGAIN
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return err
		case failed == nil && code != 0:
			return unix.Errno(code)
		default:
			return failed
		}
	}
	return unix.EINTR
}

// copyOptions copies the options that programs set before they connect.
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

// appDescriptor returns the path of the app's descriptor.
func appDescriptor(n notification) string {
	return fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0]))
}

// appFlags returns the flags of the app's descriptor: O_NONBLOCK, O_CLOEXEC and so on.
func appFlags(n notification) uint32 {
	file, err := os.Open(fmt.Sprintf("/proc/%d/fdinfo/%d", n.pid, int32(n.args[0])))
	if err != nil {
		return unix.O_CLOEXEC
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 64)
			if err == nil {
				return uint32(flags)
			}
		}
	}
	return unix.O_CLOEXEC
}

// connectUnix connects a socket to another one, by a path that was granted or by an abstract name. Abstract names
// belong to the app if it has a network namespace. Otherwise they are refused.
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
	dir, err := b.openProc(n, "cwd")
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	return onOwnThread(b.becomeApp, func() error { return b.connectPath(s, dir, path) })
}

// connectPath connects a socket to one whose path was granted. The path may be relative to dir. The calling thread must
// have the app's rights.
func (b *Broker) connectPath(s appSocket, dir int, path string) error {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	real, err := os.Readlink(descriptorPath(fd))
	if err != nil || !b.isOwnFile(fd) && !slices.Contains(b.sockets, real) {
		return unix.EACCES
	}
	return unix.Connect(s.fd, &unix.SockaddrUnix{Name: descriptorPath(fd)})
}
