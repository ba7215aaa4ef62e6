package database

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is how long sent data may remain unacknowledged before the kernel closes the connection.
const userTimeout = 5 * time.Second

// setUserTimeout sets the TCP user timeout of a socket before it connects. Other sockets, such as Unix sockets,
// do not have one.
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
