package httpapi

import (
	"io"
	"net"
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
		return &clientConn{TCPConn: tcp}, nil
	}
	return conn, err
}

type clientConn struct {
	*net.TCPConn
	linger atomic.Bool
}

// Close ends the answer first when asked to, and takes in a bounded rest of what the client sends.
func (c *clientConn) Close() error {
	if c.linger.Load() && c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
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
