package stream

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// Peer watches whether the client of a connection leaves while its request is worked on, which fasthttp
// does not report. It holds one goroutine on the network poller and looks at what arrives without
// consuming it: a request that comes after the answer is still read by the server.
type Peer struct {
	conn net.Conn
	gone chan struct{} // closed when the client has closed or reset the connection
	done chan struct{} // closed when nothing reads the connection any more
}

// WatchPeer starts watching and calls left, if it is not nil, once when the client leaves. A connection
// that is not a socket is not watched: there a failing write shows that its client has left. A client
// that has sent more is taken to be there. Stop must be called before the handler returns.
func WatchPeer(conn net.Conn, left func()) *Peer {
	p := &Peer{conn: conn, gone: make(chan struct{}), done: make(chan struct{})}
	if secure, ok := conn.(peeker); ok {
		_ = conn.SetReadDeadline(time.Time{})
		go func() {
			defer close(p.done)
			if err := secure.Peek(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.leave(left)
			}
		}()
		return p
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		close(p.done)
		return p
	}
	raw, err := socket.SyscallConn()
	if err != nil || conn.SetReadDeadline(time.Time{}) != nil { // it is closed
		close(p.done)
		p.leave(left)
		return p
	}
	go func() {
		defer close(p.done)
		over := false
		// On an error the connection was closed here, or Stop ended the wait: the client did neither.
		if raw.Read(func(fd uintptr) bool { return peek(fd, &over) }) == nil && over {
			p.leave(left)
		}
	}()
	return p
}

// peeker is a connection under TLS: what is on its socket does not show whether the client has left.
type peeker interface {
	// Peek waits until the client has sent something, which it does not consume, or has left, which is an error.
	Peek() error
}

func (p *Peer) leave(left func()) {
	close(p.gone)
	if left != nil {
		left()
	}
}

// peek reports whether the wait is over, and sets left when it is over because the client left.
func peek(fd uintptr, left *bool) bool {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if errors.Is(err, syscall.EINTR) {
			continue // the poller reports a change once: nobody would ask again
		}
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		*left = err != nil || n == 0
		return true
	}
}

// Gone is closed when the client has left.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// Stop ends the watch and returns when nothing reads the connection any more, and left has returned if
// it was called.
func (p *Peer) Stop() {
	_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // fails on a closed connection, which ends the watch too
	<-p.done
	_ = p.conn.SetReadDeadline(time.Time{})
}
