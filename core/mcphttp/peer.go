package mcphttp

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// peer notices when the client of a connection leaves, which fasthttp never tells. It parks one
// goroutine on the network poller and looks at what arrives without consuming it, so a request
// that comes after this answer is still read by the server.
type peer struct {
	conn net.Conn
	gone chan struct{} // closed when the client has closed or reset the connection
	done chan struct{} // closed when nobody watches any more
}

// watchPeer starts watching. A connection that is not a socket is not watched: its client's end is
// seen when a write fails.
func watchPeer(conn net.Conn) *peer {
	p := &peer{conn: conn, gone: make(chan struct{}), done: make(chan struct{})}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		close(p.done)
		return p
	}
	raw, err := socket.SyscallConn()
	if err != nil || conn.SetReadDeadline(time.Time{}) != nil {
		close(p.gone)
		close(p.done)
		return p
	}
	go func() {
		defer close(p.done)
		left := false
		// On an error the connection is closed here, or stop ended the wait: neither is the
		// client's doing. Bytes that wait are a next request; behind them nothing can be seen.
		if raw.Read(func(fd uintptr) bool { return peek(fd, &left) }) == nil && left {
			close(p.gone)
		}
	}()
	return p
}

// peek reports whether the wait is over, and sets left when it is over because the client left.
func peek(fd uintptr, left *bool) bool {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if errors.Is(err, syscall.EINTR) {
			continue // the poller tells of a change once: asking again is up to us
		}
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		*left = err != nil || n == 0
		return true
	}
}

// stop ends the watch and returns when nothing reads the connection any more.
func (p *peer) stop() {
	_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // fails on a closed connection, which ends the watch too
	<-p.done
	_ = p.conn.SetReadDeadline(time.Time{})
}
