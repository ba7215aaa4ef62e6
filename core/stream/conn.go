package stream

import "net"

const (
	// sendBuffer is what the kernel holds of a stream, bytes. Left alone it grows to megabytes, and
	// a stalled reader would be noticed only when they are full.
	sendBuffer = 64 << 10
	// strayLimit is how much a client may send while it reads a stream, bytes. It has no reason to
	// send anything.
	strayLimit = 16 << 10
)

// limitBuffer bounds the send buffer of a hijacked connection, where it has one.
func limitBuffer(conn net.Conn) {
	if tcp, ok := bare(conn).(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
}

// bare is the connection itself, without the reader that fasthttp put before it. What the reader
// holds was sent behind the request and is of no interest.
func bare(conn net.Conn) net.Conn {
	if u, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		return u.UnsafeConn()
	}
	return conn
}

// watch returns when the client has gone, or has sent more than it may. What it sends, such as a
// pipelined request, is never read as one: a stream is the last answer of its connection.
func watch(conn net.Conn) {
	var stray [512]byte
	for total := 0; total <= strayLimit; {
		n, err := conn.Read(stray[:])
		if err != nil {
			return
		}
		total += n
	}
}
