//go:build linux

package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target describes the server to a hostile app. The tests assume that the app knows everything about the server.
type target struct {
	Home, Config, Tokens, Database, OtherData, Plugins, Bundle, Data string
	Server, Other                                                    int // process ids
	Control, Plugin, Abstract                                        string
	TCP, TCPOwn, UDP                                                 string // addresses of services of the server
	Allowed, Full                                                    string // services that the app may connect to; Full accepts no connections
	Temporary, SharedMemory                                          string // files
	Segment                                                          int    // System V shared memory
	Postgres, PostgresSocket, Password                               string // the database server's; "" if there is none
}

const canary = "canary-7f3a"

// hostile runs one probe and prints its result.
func hostile(args []string) int {
	var t target
	if err := json.Unmarshal([]byte(args[1]), &t); err != nil {
		fmt.Println("ESCAPED bad arguments", err)
		return 1
	}
	if got := allProbes()[args[0]](t); got != "" {
		fmt.Println("ESCAPED " + got)
		return 1
	}
	fmt.Println("HELD")
	return 0
}

// allProbes returns the attacks by name. Each returns what it got hold of, or "" for nothing.
func allProbes() map[string]func(target) string {
	all := probes()
	maps.Copy(all, kernelProbes())
	maps.Copy(all, fileProbes())
	maps.Copy(all, networkProbes())
	maps.Copy(all, metadataProbes())
	return all
}

func probes() map[string]func(target) string {
	return map[string]func(target) string{
		"environment of the server":                  func(t target) string { return readsFile(proc(t.Server, "environ")) },
		"memory of the server through /proc":         func(t target) string { return opens(proc(t.Server, "mem"), os.O_RDWR) },
		"memory of the server through a system call": func(t target) string { return readsMemory(t.Server) },
		"ptrace of the server":                       func(t target) string { return traces(t.Server) },
		"ptrace of the shim":                         func(target) string { return traces(os.Getppid()) },
		"memory of the shim":                         func(target) string { return opens(proc(os.Getppid(), "mem"), os.O_RDWR) },
		"descriptors of the server":                  func(t target) string { return readsLinks(proc(t.Server, "fd")) },
		"inherited descriptors":                      inherited,
		"database":                                   func(t target) string { return readsFile(t.Database) },
		"data of another app":                        func(t target) string { return readsFile(t.OtherData) },
		"environment of another app":                 func(t target) string { return readsFile(proc(t.Other, "environ")) },
		"names of the other apps":                    func(t target) string { return lists(filepath.Join(t.Home, "apps"), "hostile") },
		"token file":                                 func(t target) string { return readsFile(t.Tokens) },
		"token file, for writing":                    func(t target) string { return opens(t.Tokens, os.O_WRONLY|os.O_APPEND) },
		"configuration":                              func(t target) string { return readsFile(t.Config) },
		"configuration, for writing":                 func(t target) string { return opens(t.Config, os.O_WRONLY|os.O_APPEND) },
		"mode of the token file":                     func(t target) string { return succeeds(os.Chmod(t.Tokens, 0o666)) },
		"times of the database":                      func(t target) string { return succeeds(os.Chtimes(t.Database, time.Now(), time.Now())) },
		"removing the database":                      func(t target) string { return succeeds(os.Remove(t.Database)) },
		"a planted plugin":                           func(t target) string { return writes(filepath.Join(t.Plugins, "auth-planted")) },
		"a file in its own bundle":                   func(t target) string { return writes(filepath.Join(t.Bundle, "planted.js")) },
		"a file in the system":                       func(target) string { return writes("/usr/local/bin/planted") },
		"a link to the database":                     links,
		"password hashes of the machine":             func(target) string { return readsAny("/etc/shadow") },
		"control socket":                             func(t target) string { return dials("unix", t.Control) },
		"socket of a plugin":                         func(t target) string { return dials("unix", t.Plugin) },
		"abstract socket":                            func(t target) string { return dials("unix", "@"+t.Abstract) },
		"loopback":                                   func(t target) string { return dials("tcp", t.TCP) },
		"loopback by another name":                   func(t target) string { return dials("tcp", strings.Replace(t.TCP, "127.0.0.1", "0.0.0.0", 1)) },
		"loopback mapped into IPv6":                  func(t target) string { return mapped(t.TCP) },
		"the server's own address":                   func(t target) string { return dials("tcp", t.TCPOwn) },
		"loopback with TCP Fast Open":                fastOpen,
		"loopback through an allowed socket":         reconnects,
		"loopback while the address changes":         races,
		"a datagram to loopback":                     datagram,
		"a datagram through a disconnected socket":   disconnects,
		"a raw socket":                               func(target) string { return socketOf(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
		"a packet socket":                            func(target) string { return socketOf(unix.AF_PACKET, unix.SOCK_RAW, 0) },
		"a socket to the hypervisor":                 func(target) string { return socketOf(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
		"a signal to the server":                     func(t target) string { return succeeds(unix.Kill(t.Server, 0)) },
		"a signal to another app":                    func(t target) string { return succeeds(unix.Kill(t.Other, 0)) },
		"a signal to the shim":                       func(target) string { return signalsShim() },
		"a user namespace":                           func(target) string { return succeeds(unix.Unshare(unix.CLONE_NEWUSER)) },
		"a mount":                                    func(t target) string { return succeeds(unix.Mount(t.Data, t.Data, "", unix.MS_BIND, "")) },
		"io_uring":                                   func(target) string { return calls(unix.SYS_IO_URING_SETUP, 4) },
		"bpf":                                        func(target) string { return calls(unix.SYS_BPF, 0) },
		"kernel keys":                                func(target) string { return calls(unix.SYS_KEYCTL, 0) },
		"a kernel module":                            func(target) string { return calls(unix.SYS_FINIT_MODULE, 0) },
		"a file opened by handle":                    func(target) string { return calls(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99)) },
		"capabilities":                               capabilities,
		"more privileges through a program":          func(target) string { return noNewPrivileges() },
		"an enormous file":                           enormousFile,
	}
}

func proc(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

func readsAny(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 {
		return ""
	}
	return fmt.Sprintf("%d bytes of %s", len(raw), path)
}

func readsFile(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 {
		return ""
	}
	return "the content of " + path
}

func opens(path string, flags int) string {
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return ""
	}
	_ = file.Close()
	return path
}

func writes(path string) string { return succeeds(os.WriteFile(path, []byte("planted"), 0o700)) }

func lists(dir, own string) string {
	names, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, name := range names {
		if name.Name() != own {
			return filepath.Join(dir, name.Name())
		}
	}
	return ""
}

func readsLinks(dir string) string {
	names, _ := os.ReadDir(dir)
	for _, name := range names {
		if to, err := os.Readlink(filepath.Join(dir, name.Name())); err == nil {
			return name.Name() + " is " + to
		}
	}
	return ""
}

func succeeds(err error) string {
	if err != nil {
		return ""
	}
	return "no error"
}

func calls(number, first uintptr) string {
	_, _, errno := unix.Syscall(number, first, 0, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return ""
	}
	return "system call answered " + errno.Error()
}

func traces(pid int) string {
	if err := unix.PtraceSeize(pid); err != nil {
		return ""
	}
	return "traced " + strconv.Itoa(pid)
}

func readsMemory(pid int) string {
	buffer := make([]byte, 8)
	local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	if err == nil || err == unix.EFAULT {
		return fmt.Sprint("answered ", err)
	}
	return ""
}

func inherited(target) string {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return ""
	}
	for _, f := range open {
		to, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if n, _ := strconv.Atoi(f.Name()); n > 2 && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") && to != "" {
			return f.Name() + " is " + to
		}
	}
	return ""
}

func links(t target) string {
	at := filepath.Join(t.Data, "link")
	if os.Link(t.Database, at) == nil {
		return "a hard link"
	}
	_ = os.Symlink(t.Database, at)
	return readsFile(at)
}

func dials(network, address string) string {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	return "connected to " + conn.RemoteAddr().String()
}

func mapped(address string) string {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Port: n, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	if unix.Connect(fd, to) != nil {
		return ""
	}
	return "connected"
}

func hearsRaw(fd int) string {
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	buffer := make([]byte, 64)
	n, _ := unix.Read(fd, buffer)
	if n <= 0 || !bytes.Contains(buffer[:n], []byte(canary)) {
		return ""
	}
	return "connected"
}

func rawAddress(address string) *unix.SockaddrInet4 {
	a, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		panic(err)
	}
	return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}
}

func fastOpen(t target) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	if unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, rawAddress(t.TCP)) != nil {
		return ""
	}
	return hearsRaw(fd)
}

// allowedSocket returns a socket connected to a service that the app may connect to.
func allowedSocket(t target) (int, bool) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil || unix.Connect(fd, rawAddress(t.Allowed)) != nil {
		return 0, false
	}
	return fd, true
}

func reconnects(t target) string {
	fd, ok := allowedSocket(t)
	if !ok {
		return "the allowed service was not reached: the probe checks nothing"
	}
	defer unix.Close(fd)
	none := [16]byte{}
	_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none[0])), 16)
	if unix.Connect(fd, rawAddress(t.TCP)) != nil {
		return ""
	}
	return hearsRaw(fd)
}

// races changes the address while the broker is deciding.
func races(t target) string {
	good, bad := rawAddress(t.Allowed), rawAddress(t.TCP)
	address := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: good.Addr}
	port := func(n int) uint16 { return uint16(n>>8) | uint16(n&0xff)<<8 }
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				address.Port, address.Port = port(good.Port), port(bad.Port)
			}
		}
	}()
	for range 200 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return ""
		}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address)), 16)
		if errno == 0 {
			if peer, err := unix.Getpeername(fd); err == nil && peer.(*unix.SockaddrInet4).Port == bad.Port {
				return "connected"
			}
		}
		_ = unix.Close(fd)
	}
	return ""
}

func datagram(t target) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	if unix.Sendto(fd, []byte("x"), 0, rawAddress(t.UDP)) != nil {
		return ""
	}
	return hearsRaw(fd)
}

func disconnects(t target) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	_ = unix.Connect(fd, rawAddress("192.0.2.200:9"))
	if unix.Sendto(fd, []byte("x"), 0, rawAddress(t.UDP)) != nil {
		return ""
	}
	return hearsRaw(fd)
}

func socketOf(domain, kind, protocol int) string {
	fd, err := unix.Socket(domain, kind, protocol)
	if err != nil {
		return ""
	}
	_ = unix.Close(fd)
	return "a socket"
}

func signalsShim() string {
	_ = unix.Kill(os.Getppid(), unix.SIGKILL)
	<-time.After(50 * time.Millisecond)
	if unix.Kill(os.Getppid(), 0) == nil && os.Getppid() != 1 {
		return "the shim may be signalled"
	}
	return ""
}

func capabilities(target) string {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") && strings.Trim(strings.TrimSpace(value), "0") != "" {
			if name != "CapBnd" || os.Getuid() == 0 {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

func noNewPrivileges() string {
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || on != 1 {
		return "no_new_privs is not set"
	}
	return ""
}

func enormousFile(t target) string {
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 40, Max: 1 << 40})
	if os.Truncate(filepath.Join(t.Data, "large"), 0) != nil {
		_ = os.WriteFile(filepath.Join(t.Data, "large"), nil, 0o600)
	}
	return succeeds(os.Truncate(filepath.Join(t.Data, "large"), 64<<20))
}
