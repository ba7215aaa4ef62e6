package stream

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// Peer watches whether the client of a connection disconnects while its request is being handled, which fasthttp does
// not report. It uses one goroutine on the network poller, and examines incoming data without consuming it, so the
// server can still read a request that follows the response.
type Peer struct {
	conn net.Conn
	gone chan struct{} // closed when the client has closed or reset the connection
	done chan struct{} // closed when nothing reads the connection
}

// WatchPeer starts watching and calls onDisconnect, if not nil, once when the client disconnects. A connection that is
// not a socket is not watched: a failing write shows that its client has disconnected. A client that has sent
// more data is considered connected. Stop must be called before the handler returns.
func WatchPeer(conn net.Conn, onDisconnect func()) *Peer {
	p := &Peer{conn: conn, gone: make(chan struct{}), done: make(chan struct{})}
	if secure, ok := conn.(peeker); ok {
		_ = conn.SetReadDeadline(time.Time{})
		go func() {
			defer close(p.done)
			if err := secure.Peek(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.leave(onDisconnect)
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
	if err != nil || conn.SetReadDeadline(time.Time{}) != nil { // the connection is closed
		close(p.done)
		p.leave(onDisconnect)
		return p
	}
	go func() {
		defer close(p.done)
		disconnected := false
		// An error does not mean that the client has disconnected: the server closed the connection, or Stop ended the
		// wait.
		if raw.Read(func(fd uintptr) bool { return peek(fd, &disconnected) }) == nil && disconnected {
			p.leave(onDisconnect)
		}
	}()
	return p
}

// peeker is a TLS connection: data on its socket does not show whether the client has disconnected.
type peeker interface {
	// Peek waits until the client sends data or disconnects. It does not consume the data. It returns an error if the
	// client has disconnected.
	Peek() error
}

func (p *Peer) leave(onDisconnect func()) {
	close(p.gone)
	if onDisconnect != nil {
		onDisconnect()
	}
}

// peek reports whether the wait is over, and sets disconnected if it is over because the client disconnected.
func peek(fd uintptr, disconnected *bool) bool {
	var one [1]byte
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if errors.Is(err, syscall.EINTR) {
			continue // the poller reports a change only once
		}
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		*disconnected = err != nil || n == 0
		return true
	}
}

// Gone returns a channel that is closed when the client has disconnected.
func (p *Peer) Gone() <-chan struct{} { return p.gone }

// Stop ends the watch. It returns when nothing reads the connection, and after onDisconnect has returned if it
// was called.
func (p *Peer) Stop() {
	_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // fails on a closed connection, which also ends the watch
	<-p.done
	_ = p.conn.SetReadDeadline(time.Time{})
}
