package sandbox

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

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

// listening is the state of a listening socket in /proc/net/tcp (proc_net_tcp.rst).
const listening = "0A"

// othersListen reports whether a socket other than fd listens on a port in this network, on any address. If the kernel
// does not answer, one does.
func othersListen(port, fd int) bool {
	var own unix.Stat_t
	if unix.Fstat(fd, &own) != nil {
		return true
	}
	for _, file := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		table, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // without IPv6
		}
		if err != nil {
			return true
		}
		for line := range strings.Lines(string(table)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[3] != listening || fields[9] == strconv.FormatUint(own.Ino, 10) {
				continue
			}
			_, text, _ := strings.Cut(fields[1], ":")
			if used, err := strconv.ParseUint(text, 16, 16); err == nil && int(used) == port {
				return true
			}
		}
	}
	return false
}
