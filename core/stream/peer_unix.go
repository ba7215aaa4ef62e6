//go:build unix

package stream

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WatchPeer calls gone once when the client of a connection leaves while its request is worked on,
// which fasthttp does not tell. It takes nothing off the connection. stop ends the watch and must be
// called before the handler returns. A client that has sent more is taken to be there.
func WatchPeer(conn net.Conn, gone func()) (stop func()) {
	c, ok := conn.(interface {
		syscall.Conn
		SetReadDeadline(time.Time) error
	})
	if !ok {
		return func() {}
	}
	raw, err := c.SyscallConn()
	if err != nil || c.SetReadDeadline(time.Time{}) != nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		left := false
		err := raw.Read(func(fd uintptr) bool {
			var one [1]byte
			n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if err == unix.EAGAIN || err == unix.EINTR {
				return false
			}
			left = n == 0 || err != nil
			return true
		})
		if err == nil && left {
			gone()
		}
	}()
	return func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-over
		_ = c.SetReadDeadline(time.Time{})
	}
}
