package stream

import "net"

const (
	// sendBuffer is the size of a stream's send buffer in the kernel, in bytes. By default it grows to
	// megabytes, and a stalled reader would be noticed only when it is full.
	sendBuffer = 64 << 10
	// strayLimit is how many bytes a client may send while it reads a stream. It has no reason to send
	// anything.
	strayLimit = 16 << 10
)

// limitBuffer limits the send buffer of a hijacked connection, if it has one.
func limitBuffer(conn net.Conn) {
	if tcp, ok := bare(conn).(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
}

// bare returns the connection itself, without fasthttp's reader. Data in that reader was sent after the request
// and is ignored.
func bare(conn net.Conn) net.Conn {
	if u, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		return u.UnsafeConn()
	}
	return conn
}

// watch returns when the client has disconnected, or has sent more than is allowed. Data from the client, such as a
// pipelined request, is never read as a request, because a stream is the last response on its connection.
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
