package mcphttp

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/ropewalk/ropewalk/core/stream"
)

const (
	// keepAlive is how often a silent stream sends a comment, so that proxies keep it open.
	keepAlive = 25 * time.Second
	// stallLimit is how long a reader may take no bytes before it is cut.
	stallLimit = 10 * time.Second
)

// reply is a POST's event stream as fasthttp reads it: each Read is sent as one chunk, on the
// request's own connection, which stays usable afterwards. A client that leaves ends the stream,
// not the calls behind it: what they still say is kept for when it comes back, as far as it fits.
type reply struct {
	from *queue
	conn net.Conn
	peer *stream.Peer
	beat *time.Ticker
	text []byte // framed, not yet read
	last bool   // nothing comes after text
}

func newReply(from *queue, conn net.Conn) *reply {
	r := &reply{from: from, conn: conn, peer: stream.WatchPeer(conn, nil), beat: time.NewTicker(keepAlive)}
	if from.primes {
		r.text = []byte("id: " + eventID(from.stream, 0) + "\ndata: \n\n")
	}
	return r
}

// Read waits for messages and gives them as events.
func (r *reply) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if r.last {
			return 0, r.allow(io.EOF)
		}
		select {
		case <-r.from.wake:
			events, open := r.from.take()
			r.text, r.last = r.from.framed(events), !open
		case <-r.beat.C:
			r.text = []byte(":\n\n")
		case <-r.peer.Gone():
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, r.allow(nil)
}

// allow gives the reader its time to take what is written next.
func (r *reply) allow(err error) error {
	if r.conn.SetWriteDeadline(time.Now().Add(stallLimit)) != nil {
		return io.ErrClosedPipe
	}
	return err
}

// Close is called when the last chunk is written, or could not be. The connection's deadlines are
// left as they were found.
func (r *reply) Close() error {
	r.beat.Stop()
	r.from.quit()
	r.peer.Stop()
	return r.conn.SetWriteDeadline(time.Time{})
}

// framed writes events as server-sent events.
func (q *queue) framed(events []frame) []byte {
	var b bytes.Buffer
	for _, e := range events {
		// Line ends are white space in JSON: without them a message is one line.
		text := bytes.ReplaceAll(bytes.ReplaceAll(e.text, []byte{'\r'}, []byte{' '}), []byte{'\n'}, []byte{' '})
		if id := q.id(e); id != "" {
			b.WriteString("id: " + id + "\n")
		}
		b.WriteString("event: message\ndata: ")
		b.Write(text)
		b.WriteString("\n\n")
	}
	return b.Bytes()
}
