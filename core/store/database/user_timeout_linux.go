package database

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is how long sent data may stay unacknowledged before the kernel ends the connection.
const userTimeout = 5 * time.Second

// setUserTimeout sets the TCP user timeout of a socket before it connects. A socket of another kind,
// such as a Unix socket, has none.
func setUserTimeout(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	if errors.Is(set, unix.EOPNOTSUPP) || errors.Is(set, unix.ENOPROTOOPT) {
		set = nil
	}
	return errors.Join(err, set)
}
