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
	left func()        // called when the reader has gone, for good or because all is read

	mu     sync.Mutex
	frames [][]byte
	bytes  int
	closed bool // nothing more will come
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), left: func() {}} }

// push adds a message. When the reader is too far behind, what it has not read is dropped and the
// stream ends.
func (q *queue) push(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.frames) >= maxQueued || q.bytes+len(frame) > maxQueuedBytes {
		q.frames, q.bytes, q.closed = nil, 0, true
		q.signal()
		return
	}
	q.add(frame)
}

// deliver adds a message that is never dropped: there are as many as there are calls.
func (q *queue) deliver(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.add(frame)
	}
}

func (q *queue) add(frame []byte) {
	q.frames, q.bytes = append(q.frames, frame), q.bytes+len(frame)
	q.signal()
}

// take returns what has come, and whether more may.
func (q *queue) take() (frames [][]byte, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames, q.frames, q.bytes = q.frames, nil, 0
	return frames, !q.closed
}

// close ends the stream after what is queued.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// copyTo writes messages as events until the stream is closed or its reader is gone.
func (q *queue) copyTo(ctx context.Context, w *stream.Writer) {
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for open := true; open; {
		var frames [][]byte
		select {
		case <-q.wake:
			frames, open = q.take()
		case <-beat.C:
			_ = w.Comment() // a failure ends ctx
		case <-ctx.Done():
			return
		}
		for _, frame := range frames {
			if w.Event("message", frame) != nil {
				return
			}
		}
	}
}
