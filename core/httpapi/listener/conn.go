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
	lingerBytes = 16 << 20 // many clients read nothing until they have sent everything
)

// Conn is a connection that can be closed without losing its last response. On an ordinary connection, a client whose
// request is refused while it is still being sent, for example because the body is too large, would see the connection
// reset before it could read the reason.
type Conn struct {
	*net.TCPConn
	listener         *Listener
	peer             netip.Addr
	linger           atomic.Bool
	idleSince        atomic.Int64 // Unix nanoseconds; 0 while a request is being served
	reading, writing deadline

	// Used only by the goroutine that reads requests.
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

// SetIdle records whether conn is waiting for a request, in which case it may be evicted. It does nothing if conn is
// not a Conn.
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

// EndedBare reports whether the request line of the request being read from conn ended in a bare line feed. It must be
// called by the goroutine that serves the connection, before the body is read.
func EndedBare(conn net.Conn, method, target, version []byte) bool {
	c := below(conn)
	return c != nil && c.lines.endedBare(method, target, version)
}

// Complete reports whether a body that was read to its end from conn is complete. The HTTP library accepts a chunked
// body even if the connection ends between two chunks. After a complete body, it does not try to read more bytes.
// Complete must be called by the goroutine that serves the connection, once per request.
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

// SetReadDeadline implements net.Conn, with the delay that type deadline describes.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.reading.schedule(t) }

// SetWriteDeadline implements net.Conn, with the delay that type deadline describes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.writing.schedule(t) }

// SetDeadline implements net.Conn, with the delay that type deadline describes.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close closes the connection. If LingerOnClose was called, it first ends the response and then discards a limited
// amount of further data from the client.
func (c *Conn) Close() error {
	c.listener.closed(c)
	if c.linger.Load() && c.CloseWrite() == nil && c.TCPConn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}

// LingerOnClose makes conn, if it is a Conn, deliver its response before it closes.
func LingerOnClose(conn net.Conn) {
	if c := below(conn); c != nil {
		c.linger.Store(true)
	}
}

// below returns conn itself if it is a Conn, the Conn underneath TLS if it is a SecureConn, and nil otherwise.
func below(conn net.Conn) *Conn {
	switch c := conn.(type) {
	case *Conn:
		return c
	case *SecureConn:
		return c.Conn
	}
	return nil
}
