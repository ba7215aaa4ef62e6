package listener

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

const (
	lingerTime  = time.Second
	lingerBytes = 16 << 20 // many clients read nothing before they have sent everything
)

// Conn is a connection that can close without losing its last response. A client that is refused
// while it still sends, such as one with too large a body, would otherwise see its connection reset
// before it can read why.
type Conn struct {
	*net.TCPConn
	listener         *Listener
	peer             netip.Addr
	linger           atomic.Bool
	idleSince        atomic.Int64 // Unix nanoseconds; 0 while a request is served
	reading, writing deadline

	// Of the goroutine that reads requests.
	lines requestLines
	ended bool // the client has closed its side
}

func newConn(tcp *net.TCPConn, l *Listener) *Conn {
	c := &Conn{TCPConn: tcp, listener: l}
	c.reading.set, c.writing.set = tcp.SetReadDeadline, tcp.SetWriteDeadline
	if addr, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
		c.peer = addr.AddrPort().Addr().Unmap().WithZone("")
	}
	c.setIdle(true)
	return c
}

// SetIdle says whether conn, if it is a Conn, waits for a request, so that it may be evicted.
func SetIdle(conn net.Conn, idle bool) {
	if c := below(conn); c != nil {
		c.setIdle(idle)
	}
}

func (c *Conn) setIdle(idle bool) {
	if idle {
		c.idleSince.Store(time.Now().UnixNano())
		return
	}
	c.idleSince.Store(0)
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.reading.apply(); err != nil {
		return 0, err
	}
	n, err := c.TCPConn.Read(p)
	c.lines.scan(p[:n])
	c.ended = c.ended || errors.Is(err, io.EOF)
	return n, err
}

// EndedBare reports whether the request line of the request that is read from conn ended in a bare line
// feed. The goroutine that serves the connection calls it before it reads the body.
func EndedBare(conn net.Conn, method, target, version []byte) bool {
	c := below(conn)
	return c != nil && c.lines.endedBare(method, target, version)
}

// Complete reports whether a body that was read up to its end from conn is all that the client sent of
// it. The HTTP library takes a chunked body as complete when the connection ends between two chunks;
// a complete one ends without looking for more bytes. It is called by the goroutine that serves the
// connection, once for each request.
func Complete(conn net.Conn, chunked bool) bool {
	c := below(conn)
	if c == nil {
		return true
	}
	c.lines.endBody()
	return !chunked || !c.ended
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.writing.apply(); err != nil {
		return 0, err
	}
	return c.TCPConn.Write(p)
}

// SetReadDeadline implements net.Conn, as deadline says.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.reading.want(t) }

// SetWriteDeadline implements net.Conn, as deadline says.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.writing.want(t) }

// SetDeadline implements net.Conn, as deadline says.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close ends the response first when LingerOnClose asked for it, and discards a bounded rest of
// what the client sends.
func (c *Conn) Close() error {
	c.listener.closed(c)
	if c.linger.Load() && c.CloseWrite() == nil && c.TCPConn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}

// LingerOnClose makes conn deliver its response before it closes, if it is a Conn.
func LingerOnClose(conn net.Conn) {
	if c := below(conn); c != nil {
		c.linger.Store(true)
	}
}

// below returns the Conn that conn is or has below TLS, nil for another connection.
func below(conn net.Conn) *Conn {
	switch c := conn.(type) {
	case *Conn:
		return c
	case *SecureConn:
		return c.Conn
	}
	return nil
}
