package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

const (
	maxQueue            = 32 << 20         // bytes that wait for a bundle to read them
	writePiece          = 64 << 10         // a bundle must take this much ...
	defaultWriteTimeout = 30 * time.Second // ... in this time
)

// queue is the one writer of a connection: messages wait in one buffer, and a goroutine writes all
// that has gathered at once. A bundle that reads nothing for the timeout is given up.
type queue struct {
	out     io.Writer
	limit   int
	timeout time.Duration
	stalled func(error)

	raw syscall.RawConn // of out; nil when it is no file

	mu     sync.Mutex
	buf    []byte
	busy   bool          // run is writing what it took
	room   chan struct{} // closed when buf was taken to be written; nil while nobody waits for that
	wake   chan struct{} // holds one
	closed chan struct{}
	once   sync.Once
}

func newQueue(out io.Writer, timeout time.Duration, stalled func(error)) *queue {
	q := &queue{
		out: out, limit: maxQueue, timeout: timeout, stalled: stalled,
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if file, ok := out.(syscall.Conn); ok {
		q.raw, _ = file.SyscallConn()
	}
	return q
}

func (q *queue) close() { q.once.Do(func() { close(q.closed) }) }

// add lets put append one message of about size bytes. It waits for room until ctx ends; a message
// larger than the whole queue gets in when the queue is empty.
func (q *queue) add(ctx context.Context, size int, put func([]byte) []byte) error {
	for {
		added, room := q.try(size, put)
		if added {
			return nil
		}
		select {
		case <-q.closed:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
	}
}

// direct writes the message from here when nothing else is being written and nothing waits, which
// spares a lone call the way over the writer's goroutine. It never waits: what the bundle does not
// take at once is left to the writer. false means that nothing was done.
func (q *queue) direct(size int, put func([]byte) []byte) bool {
	select {
	case <-q.closed:
		return false
	default:
	}
	if q.raw == nil || size > writePiece {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy || len(q.buf) > 0 {
		return false
	}
	message := put(q.buf[:0])
	rest := copy(message, message[writeNow(q.raw, message):])
	if q.buf = message[:rest]; rest > 0 {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// try adds the message if there is room, and otherwise says when to try again.
func (q *queue) try(size int, put func([]byte) []byte) (added bool, room <-chan struct{}) {
	select {
	case <-q.closed:
		return false, nil
	default:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.buf) > 0 && len(q.buf)+size > q.limit {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		return false, q.room
	}
	q.buf = put(q.buf)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true, nil
}

// run writes until the queue is closed or a write fails.
func (q *queue) run() {
	var spare []byte
	watch := time.AfterFunc(q.timeout, func() {
		q.stalled(fmt.Errorf("%w: nothing was taken for %v", ErrStalled, q.timeout))
	})
	watch.Stop()
	defer watch.Stop()
	for {
		select {
		case <-q.closed:
			return
		case <-q.wake:
		}
		q.mu.Lock()
		full := q.buf
		q.buf, q.busy = spare[:0], true
		if q.room != nil {
			close(q.room)
			q.room = nil
		}
		q.mu.Unlock()
		if err := q.write(full, watch); err != nil {
			q.stalled(err)
			return
		}
		q.mu.Lock()
		q.busy = false
		q.mu.Unlock()
		spare = full
		if cap(spare) > keepBuffer {
			spare = nil
		}
	}
}

// write writes in pieces, each with the whole timeout to itself.
func (q *queue) write(data []byte, watch *time.Timer) error {
	for len(data) > 0 {
		piece := data[:min(len(data), writePiece)]
		watch.Reset(q.timeout)
		n, err := q.out.Write(piece)
		watch.Stop()
		if err != nil {
			return fmt.Errorf("write to the app: %w", err)
		}
		if n < len(piece) {
			return errors.New("write to the app: not all was taken")
		}
		data = data[n:]
	}
	return nil
}
