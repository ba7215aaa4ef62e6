package httpapi

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	lingerTime  = time.Second
	lingerBytes = 16 << 20 // many clients read nothing before they have sent everything
)

// clients is a listener whose connections can close without losing their last answer. A client
// that is refused while it still sends, such as one with too large a body, would otherwise see its
// connection reset before it reads why.
type clients struct{ net.Listener }

func (l clients) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		c := &clientConn{TCPConn: tcp}
		c.reading.set, c.writing.set = tcp.SetReadDeadline, tcp.SetWriteDeadline
		return c, nil
	}
	return conn, err
}

type clientConn struct {
	*net.TCPConn
	linger           atomic.Bool
	reading, writing deadline
}

// Read implements net.Conn.
func (c *clientConn) Read(p []byte) (int, error) {
	if err := c.reading.apply(); err != nil {
		return 0, err
	}
	return c.TCPConn.Read(p)
}

// Write implements net.Conn.
func (c *clientConn) Write(p []byte) (int, error) {
	if err := c.writing.apply(); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(p)
}

// SetReadDeadline implements net.Conn, as deadline says.
func (c *clientConn) SetReadDeadline(t time.Time) error { return c.reading.want(t) }

// SetWriteDeadline implements net.Conn, as deadline says.
func (c *clientConn) SetWriteDeadline(t time.Time) error { return c.writing.want(t) }

// SetDeadline implements net.Conn, as deadline says.
func (c *clientConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// deadline is one that counts from the next Read or Write on, and may come slack late. The HTTP
// library sets four for each request, which would cost as much as reading it; under most of them
// nothing is read, and most are hardly later than the one before. One that is over, and none at all,
// count at once: they are for whoever reads at this moment.
type deadline struct {
	set func(time.Time) error

	mu      sync.Mutex
	wanted  time.Time // zero when what is applied is what was wanted
	applied time.Time
}

const slack = time.Second

func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.IsZero() || time.Until(t) <= 0 {
		d.wanted, d.applied = time.Time{}, t
		return d.set(t)
	}
	d.wanted = t
	return nil
}

func (d *deadline) apply() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted.IsZero() || !d.wanted.After(d.applied) && d.applied.Sub(d.wanted) <= slack {
		return nil
	}
	d.applied = d.wanted.Add(slack)
	return d.set(d.applied)
}

// Close ends the answer first when asked to, and takes in a bounded rest of what the client sends.
func (c *clientConn) Close() error {
	if c.linger.Load() && c.CloseWrite() == nil && c.TCPConn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}

// lingerOn makes conn linger when it is closed.
func lingerOn(conn net.Conn) {
	if c, ok := conn.(*clientConn); ok {
		c.linger.Store(true)
	}
}
