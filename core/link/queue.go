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

// queue writes to a connection, one at a time and in order. Messages wait in one buffer. Whoever adds
// one while nobody writes does so himself, all that has gathered meanwhile included, as far as the
// bundle takes it without waiting; the rest is left to a goroutine. A bundle that reads nothing for the
// timeout is given up.
type queue struct {
	out     io.Writer
	limit   int
	timeout time.Duration
	stalled func(error)

	now *nowWriter // writes to out without waiting; nil when it is no file

	mu     sync.Mutex
	buf    []byte        // what waits
	rest   []byte        // what is left of what was begun; goes before buf
	spare  []byte        // to be the next buf
	busy   bool          // somebody writes, or run has been asked to
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
		if raw, err := file.SyscallConn(); err == nil {
			q.now = newNowWriter(raw)
		}
	}
	return q
}

func (q *queue) close() { q.once.Do(func() { close(q.closed) }) }

// add lets put append one message of about size bytes. It waits for space until ctx ends; a message
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

// try adds the message if there is space, and otherwise says when to try again.
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
	if !q.busy {
		q.busy = true
		q.writeHere()
	}
	return true, nil
}

// maxRounds is how often one who adds a message writes what others add meanwhile.
const maxRounds = 4

// writeHere writes what the bundle takes without waiting, and tells run of the rest. It is called with
// busy set and mu held, which it gives up while it writes.
func (q *queue) writeHere() {
	for round := 0; len(q.buf) > 0; round++ {
		if q.now == nil || round == maxRounds {
			q.wake <- struct{}{} // busy was not set: nobody else has said so
			return
		}
		full := q.take()
		q.mu.Unlock()
		n := q.now.write(full)
		q.mu.Lock()
		if n < len(full) {
			q.rest = full[n:]
			q.wake <- struct{}{}
			return
		}
		q.giveBack(full)
	}
	q.busy = false
}

// take takes what is to be written next. mu is held.
func (q *queue) take() []byte {
	if q.rest != nil {
		rest := q.rest
		q.rest = nil
		return rest
	}
	full := q.buf
	q.buf, q.spare = q.spare[:0], nil
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
	return full
}

// giveBack keeps a buffer for later. mu is held.
func (q *queue) giveBack(written []byte) {
	if cap(written) <= keepBuffer {
		q.spare = written
	}
}

// run writes what others left to it until the queue is closed or a write fails.
func (q *queue) run() {
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
		if err := q.drain(watch); err != nil {
			q.stalled(err)
			return
		}
	}
}

// drain writes until nothing waits.
func (q *queue) drain(watch *time.Timer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.rest != nil || len(q.buf) > 0 {
		full := q.take()
		q.mu.Unlock()
		err := q.write(full, watch)
		q.mu.Lock()
		if err != nil {
			return err
		}
		q.giveBack(full)
	}
	q.busy = false
	return nil
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
