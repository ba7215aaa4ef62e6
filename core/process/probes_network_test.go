//go:build linux

package process_test

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// networkProbes are attacks on the server's network.
func networkProbes() map[string]func(target) string {
	return map[string]func(target) string{
		"loopback in other spellings": spellings,
		"sockets of other families": func(target) string {
			for family := range 64 {
				switch family {
				case unix.AF_UNSPEC, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
					continue
				}
				for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
					if got := socketOf(family, kind, 0); got != "" {
						return fmt.Sprintf("family %d", family)
					}
				}
			}
			return ""
		},
		"sockets of other protocols": func(target) string {
			for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
				for protocol := range 300 {
					stream, datagram := protocol != 0 && protocol != unix.IPPROTO_TCP, protocol != 0 && protocol != unix.IPPROTO_UDP
					if stream && socketOf(family, unix.SOCK_STREAM, protocol) != "" || datagram && socketOf(family, unix.SOCK_DGRAM, protocol) != "" {
						return fmt.Sprintf("protocol %d", protocol)
					}
				}
			}
			return ""
		},
		"messages of the kernel's subsystems": func(target) string {
			for protocol := 1; protocol < 32; protocol++ {
				if got := socketOf(unix.AF_NETLINK, unix.SOCK_RAW, protocol); got != "" {
					return fmt.Sprintf("netlink %d", protocol)
				}
			}
			return ""
		},
		"a pair of sockets of another family": func(target) string {
			fds, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_STREAM, 0)
			if err != nil {
				return ""
			}
			return fmt.Sprint(fds)
		},
		"a port of the server's network":    listensOutside,
		"the port of the database server":   func(t target) string { return dials("tcp", t.Postgres) },
		"the socket of the database server": func(t target) string { return dials("unix", t.PostgresSocket) },
		"the password of the database":      findsPassword,
	}
}

func spellings(t target) string {
	_, port, _ := net.SplitHostPort(t.TCPOwn) // a service on all addresses
	for _, host := range []string{"127.0.0.2", "127.255.255.254", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::127.0.0.1", "0.0.0.1"} {
		if got := dials("tcp", net.JoinHostPort(host, port)); got != "" {
			return host
		}
	}
	number, _ := strconv.Atoi(port)
	own, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range own { // including link-local ones with their zones
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			if got := dials("tcp", netip.AddrPortFrom(prefix.Addr(), uint16(number)).String()); got != "" {
				return a.String()
			}
		}
	}
	return ""
}

// listensOutside abandons a connection in progress. The shim has then already replaced the app's socket with a socket
// in the server's network.
func listensOutside(t target) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	before, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return err.Error()
	}
	if err := unix.Connect(fd, rawAddress(t.Full)); err != unix.EINPROGRESS {
		return fmt.Sprintf("the connection is not being made (%v): the probe checks nothing", err)
	}
	after, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil || after == before {
		return fmt.Sprintf("the socket is the app's own (%v): the probe checks nothing", err)
	}
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	if unix.Listen(fd, 1) == nil {
		return "listens in the server's network"
	}
	own, err := net.Listen("tcp", "127.0.0.1:0") // allowed in its own network
	if err != nil {
		return "it cannot listen at all: " + err.Error()
	}
	_ = own.Close()
	return ""
}

// findsPassword looks for the password in everything readable about all processes, and in the server's files.
func findsPassword(t target) string {
	files := []string{t.Config, t.Database, t.Database + "-wal", "/proc/net/unix", "/proc/keys"}
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/proc/[0-9]*/task/*/comm", t.Home + "/*", t.Home + "/*/*", "/tmp/*", "/dev/shm/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err.Error()
		}
		files = append(files, found...)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if t.Password != "" && err == nil && bytes.Contains(raw, []byte(t.Password)) {
			return file
		}
	}
	for _, variable := range os.Environ() {
		if t.Password != "" && strings.Contains(variable, t.Password) {
			return "the environment"
		}
	}
	return ""
}
