package mcphttp

import (
	"context"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/stream"
)

// What a stream holds for a reader that does not keep up; past it the stream is cut. Emitters
// never wait for a reader.
const (
	maxQueued      = 4096
	maxQueuedBytes = 16 << 20
)

// queue is the messages of one stream that are not yet written, in order. One reader takes.
type queue struct {
	wake chan struct{} // holds a token when there is something to take
	left func()        // called when the reader has gone, for good or because all is read; nil for nobody

	log    *journal // remembers what is pushed, and what is delivered after that; nil for nothing
	stream int64    // the number log knows the stream by
	primes bool     // the stream begins with an event that only has an id

	mu     sync.Mutex
	events []frame
	bytes  int
	begun  bool // something was pushed
	closed bool // nothing more will be read
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// push adds a message. When the reader is too far behind, what it has not read is dropped and the
// stream ends.
func (q *queue) push(text []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = true
	q.limited(q.note(text))
}

// begin makes the queue a stream before there is something to push.
func (q *queue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.begun {
		return
	}
	q.begun = true
	if q.log != nil {
		q.log.begin(q.stream)
	}
}

// give adds an event that is noted already.
func (q *queue) give(e frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limited(e)
}

// deliver adds a message that is never dropped: there are as many as there are calls.
func (q *queue) deliver(text []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := frame{text: text}
	if q.begun {
		e = q.note(text)
	}
	if !q.closed {
		q.add(e)
	}
}

func (q *queue) note(text []byte) frame {
	if q.log == nil {
		return frame{text: text}
	}
	return q.log.add(q.stream, text)
}

func (q *queue) limited(e frame) {
	switch {
	case q.closed:
	case len(q.events) >= maxQueued || q.bytes+len(e.text) > maxQueuedBytes:
		q.events, q.bytes, q.closed = nil, 0, true
		q.signal()
	default:
		q.add(e)
	}
}

func (q *queue) add(e frame) {
	q.events, q.bytes = append(q.events, e), q.bytes+len(e.text)
	q.signal()
}

// take returns what has come, and whether more may.
func (q *queue) take() (events []frame, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.events, q.bytes = q.events, nil, 0
	return events, !q.closed
}

// close ends the stream after what is queued.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
	if q.begun && q.log != nil {
		q.log.end(q.stream)
	}
}

// quit says that the reader has gone. What still comes is noted, if it is, for when it comes back.
func (q *queue) quit() {
	q.mu.Lock()
	q.events, q.bytes, q.closed = nil, 0, true
	q.mu.Unlock()
	if q.left != nil {
		q.left()
	}
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// id names an event of this stream to the client, "" for one that was not noted.
func (q *queue) id(e frame) string {
	if e.number == 0 {
		return ""
	}
	return eventID(q.stream, e.number)
}

// copyTo writes messages as events until the stream is closed or its reader is gone.
func (q *queue) copyTo(ctx context.Context, w *stream.Writer) {
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for open := true; open; {
		var events []frame
		select {
		case <-q.wake:
			events, open = q.take()
		case <-beat.C:
			_ = w.Comment() // a failure ends ctx
		case <-ctx.Done():
			return
		}
		for _, e := range events {
			if w.EventWithID(q.id(e), "message", e.text) != nil {
				return
			}
		}
	}
}
