package sse

import (
	"io"
	"net"
	"time"

	"github.com/ropewalk/ropewalk/core/stream"
)

// stallLimit is how long a reader may stall before its stream is cut off.
const stallLimit = 10 * time.Second

// Body is the event stream of a POST in the form that fasthttp reads. Each Read is sent as one chunk on the request's
// own connection, which stays usable afterwards. A client that disconnects ends the stream but not the calls behind it.
// The journal records later messages of the calls, up to its limits, so that a client that comes back can receive them.
type Body struct {
	from *Queue
	conn net.Conn
	peer *stream.Peer
	beat *time.Ticker
	text []byte // framed but not yet read
	last bool   // nothing comes after text
}

// NewBody returns the body that sends a queue on a connection.
func NewBody(from *Queue, conn net.Conn) *Body {
	b := &Body{from: from, conn: conn, peer: stream.WatchPeer(conn, nil), beat: time.NewTicker(KeepAlive)}
	if from.primed {
		b.text = []byte("id: " + EventID(from.stream, 0) + "\ndata: \n\n")
	}
	return b
}

// Read waits for messages and returns them as events.
func (b *Body) Read(p []byte) (int, error) {
	for len(b.text) == 0 {
		if b.last {
			return 0, b.extend(io.EOF)
		}
		select {
		case <-b.from.Wake:
			events, open := b.from.Take()
			b.text, b.last = b.from.frame(events), !open
		case <-b.beat.C:
			b.text = []byte(":\n\n")
		case <-b.peer.Gone():
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	return n, b.extend(nil)
}

// extend extends the connection's write deadline, so that the client has time to receive the next chunk.
func (b *Body) extend(err error) error {
	if b.conn.SetWriteDeadline(time.Now().Add(stallLimit)) != nil {
		return io.ErrClosedPipe
	}
	return err
}

// Close is called when the last chunk has been written, or when writing has failed. It clears the connection's write
// deadline.
func (b *Body) Close() error {
	b.beat.Stop()
	b.from.abandon()
	b.peer.Stop()
	return b.conn.SetWriteDeadline(time.Time{})
}
