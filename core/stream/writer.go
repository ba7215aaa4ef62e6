package stream

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeTimeout is how long a reader may accept no data before it is disconnected.
const writeTimeout = 10 * time.Second

// ErrClosed is returned by a Writer whose stream has ended.
var ErrClosed = errors.New("stream is closed")

// Writer writes the events of one stream. Its methods may be called concurrently. After an error the stream has
// ended: its context is done and every later call fails.
type Writer struct {
	conn    net.Conn
	chunked bool
	broken  func() // called when the connection can no longer be written to

	mu     sync.Mutex
	head   []byte // status line and headers, until they are written
	closed bool
}

// Event writes an event as one piece: the event line if name is not "", one data line for each line of data,
// and the empty line that ends it. A name with a line break is an error.
func (w *Writer) Event(name string, data []byte) error { return w.EventWithID("", name, data) }

// EventWithID is like Event, but first writes an id line if id is not "". An id with a line break is an error.
func (w *Writer) EventWithID(id, name string, data []byte) error {
	if strings.ContainsAny(name, "\r\n\x00") || strings.ContainsAny(id, "\r\n\x00") {
		return errors.New("event name or id contains a line break")
	}
	var b bytes.Buffer
	b.Grow(len(id) + len(name) + len(data) + 32)
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	for line := range bytes.SplitSeq(lines(data), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return w.send(b.Bytes())
}

// lines converts the other two line endings of the SSE grammar to line feeds.
func lines(data []byte) []byte {
	if bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// Comment writes a line that readers ignore, which keeps proxies from closing a silent stream.
func (w *Writer) Comment() error { return w.send([]byte(":\n\n")) }

// Flush sends the headers if nothing has been written yet.
func (w *Writer) Flush() error { return w.write(nil) }

// send writes payload as one chunk, in one write.
func (w *Writer) send(payload []byte) error {
	if w.chunked {
		framed := make([]byte, 0, len(payload)+20)
		framed = append(strconv.AppendInt(framed, int64(len(payload)), 16), "\r\n"...)
		payload = append(append(framed, payload...), "\r\n"...)
	}
	return w.write(payload)
}

func (w *Writer) write(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if len(w.head) > 0 {
		p, w.head = append(w.head, p...), nil
	}
	if len(p) == 0 {
		return nil
	}
	err := w.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = w.conn.Write(p)
	}
	if err != nil {
		w.closed = true
		w.broken()
	}
	return err
}

// finish ends the body, so that a reader can distinguish a complete stream from a truncated one.
func (w *Writer) finish() {
	if w.chunked {
		_ = w.write([]byte("0\r\n\r\n"))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}
