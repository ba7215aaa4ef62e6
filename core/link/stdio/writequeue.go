package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxQueue            = 32 << 20         // bytes waiting for an app to read them
	largeMessage        = 64 << 10         // a message of this many bytes takes its own turn
	turn                = 64 << 10         // bytes of smaller messages written in one turn
	writePiece          = 64 << 10         // bytes that an app must read before the timeout
	defaultWriteTimeout = 30 * time.Second // how long an app may take to read one piece
)

// writeQueue writes to a connection, one write at a time. Small messages wait in one buffer, so that one write
// takes many of them. When that buffer is full, messages wait in a line per sender, and the lines take turns: a
// sender of many or large messages delays the others by at most one turn. Each sender's messages stay in order.
//
// A goroutine that adds a message while nothing is being written writes it directly, with everything added in
// the meantime, until the app's pipe would block. The goroutine in run writes the rest.
// stalled is called if the app reads nothing for the timeout.
type writeQueue struct {
	out     io.Writer
	limit   int // bytes that may wait
	share   int // part of the limit that one sender may use
	timeout time.Duration
	stalled func(error)

	direct *directWriter // writes to out without blocking; nil when out is not a file

	mu     sync.Mutex
	buf    []byte        // small messages for the next write
	lines  lines         // messages that do not fit in buf, by sender
	rest   []byte        // the rest of a write in progress; is written before buf
	queued int           // bytes in buf and lines
	spare  []byte        // becomes the next buf
	busy   bool          // a goroutine is writing, or run is about to
	space  chan struct{} // closed when buf is taken for writing; nil while no goroutine waits for that
	wake   chan struct{} // capacity 1
	closed chan struct{}
	once   sync.Once
}

func newWriteQueue(out io.Writer, timeout time.Duration, stalled func(error)) *writeQueue {
	q := &writeQueue{
		out: out, limit: maxQueue, share: maxQueue / 4, timeout: timeout, stalled: stalled,
		wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if file, ok := out.(syscall.Conn); ok {
		if raw, err := file.SyscallConn(); err == nil {
			q.direct = newDirectWriter(raw)
		}
	}
	return q
}

func (q *writeQueue) close() { q.once.Do(func() { close(q.closed) }) }

// add calls put to append one message of about size bytes. It waits for space until ctx ends. A message larger than
// the sender's share is accepted when the sender's line is empty. A message larger than the whole queue is accepted
// when the queue is empty.
func (q *writeQueue) add(ctx context.Context, sender string, size int, put func([]byte) []byte) error {
	for {
		added, space := q.try(sender, size, put)
		if added {
			return nil
		}
		select {
		case <-q.closed:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case <-space:
		}
	}
}

// try adds the message if there is space. Otherwise it returns a channel that is closed when there may be space, or
// nil if the queue is closed.
func (q *writeQueue) try(sender string, size int, put func([]byte) []byte) (added bool, space <-chan struct{}) {
	select {
	case <-q.closed:
		return false, nil
	default:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.lines.waiting(sender)
	if q.queued > 0 && q.queued+size > q.limit || waiting > 0 && waiting+size > q.share {
		if q.space == nil {
			q.space = make(chan struct{})
		}
		return false, q.space
	}
	q.append(sender, size, put)
	if !q.busy {
		q.busy = true
		q.writeDirectly()
	}
	return true, nil
}

// append appends a message of about size bytes to the waiting messages. The caller holds mu.
func (q *writeQueue) append(sender string, size int, put func([]byte) []byte) {
	if size >= largeMessage || q.lines.any() || len(q.buf) > 0 && len(q.buf)+size > turn {
		q.queued += q.lines.append(sender, size, put)
		return
	}
	before := len(q.buf)
	q.buf = put(q.buf)
	q.queued += len(q.buf) - before
}

// writeDirectly writes as much as the app accepts without blocking. run writes the rest. writeDirectly is called with
// busy set and mu held, and releases mu while it writes.
func (q *writeQueue) writeDirectly() {
	for q.queued > 0 {
		if q.direct == nil {
			q.wake <- struct{}{} // busy was not set, so the channel is empty
			return
		}
		full := q.takeNext()
		q.mu.Unlock()
		n := q.direct.write(full)
		q.mu.Lock()
		if n < len(full) {
			q.rest = full[n:]
			q.wake <- struct{}{}
			return
		}
		q.reuse(full)
	}
	q.busy = false
}

// takeNext removes and returns the bytes to write next. The caller holds mu.
func (q *writeQueue) takeNext() []byte {
	if q.rest != nil {
		rest := q.rest
		q.rest = nil
		return rest
	}
	if q.space != nil {
		close(q.space)
		q.space = nil
	}
	if len(q.buf) == 0 {
		next := q.lines.takeTurn()
		q.queued -= len(next)
		return next
	}
	full := q.buf
	q.buf, q.spare = q.spare[:0], nil
	q.queued -= len(full)
	return full
}

// reuse keeps a buffer for later. The caller holds mu.
func (q *writeQueue) reuse(written []byte) {
	if cap(written) <= largeMessage {
		q.spare = written
	}
}

// run writes the messages that could not be written directly, until the queue is closed or a write fails.
func (q *writeQueue) run() {
	watch := time.AfterFunc(q.timeout, func() {
		q.stalled(fmt.Errorf("%w: nothing was read for %v", ErrStalled, q.timeout))
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

// drain writes until the queue is empty.
func (q *writeQueue) drain(watch *time.Timer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.rest != nil || q.queued > 0 {
		full := q.takeNext()
		q.mu.Unlock()
		err := q.write(full, watch)
		q.mu.Lock()
		if err != nil {
			return err
		}
		q.reuse(full)
	}
	q.busy = false
	return nil
}

// write writes in pieces. The timeout applies to each piece.
func (q *writeQueue) write(data []byte, watch *time.Timer) error {
	for len(data) > 0 {
		piece := data[:min(len(data), writePiece)]
		watch.Reset(q.timeout)
		n, err := q.out.Write(piece)
		watch.Stop()
		if err != nil {
			return fmt.Errorf("write to the app: %w", err)
		}
		if n < len(piece) {
			return errors.New("write to the app: short write")
		}
		data = data[n:]
	}
	return nil
}

// lines holds the waiting messages, one line per sender. The lines take turns.
type lines struct {
	bySender map[string]*line
	order    []*line // the lines with messages; the next turn comes first
}

// line holds one sender's waiting messages, in order.
type line struct {
	sender string
	turns  [][]byte
	bytes  int
}

func (l *lines) any() bool { return len(l.order) > 0 }

// waiting returns how many bytes of a sender's messages are waiting.
func (l *lines) waiting(sender string) int {
	if one := l.bySender[sender]; one != nil {
		return one.bytes
	}
	return 0
}

// append calls put to append one message of about size bytes to its sender's line. It returns the message's actual
// size.
func (l *lines) append(sender string, size int, put func([]byte) []byte) int {
	one := l.bySender[sender]
	if one == nil {
		one = &line{sender: sender}
		if l.bySender == nil {
			l.bySender = make(map[string]*line)
		}
		l.bySender[sender] = one
		l.order = append(l.order, one)
	}
	last := len(one.turns) - 1
	if last < 0 || len(one.turns[last])+size > turn {
		one.turns = append(one.turns, make([]byte, 0, size))
		last++
	}
	before := len(one.turns[last])
	one.turns[last] = put(one.turns[last])
	added := len(one.turns[last]) - before
	one.bytes += added
	return added
}

// takeTurn removes and returns the messages of the next turn: one large message, or several small ones from one sender.
func (l *lines) takeTurn() []byte {
	one := l.order[0]
	l.order[0], l.order = nil, l.order[1:]
	next := one.turns[0]
	one.turns[0], one.turns = nil, one.turns[1:]
	one.bytes -= len(next)
	if len(one.turns) > 0 {
		l.order = append(l.order, one)
	} else {
		delete(l.bySender, one.sender)
	}
	return next
}

// directWriter writes as much as a pipe accepts without blocking. It must not be used concurrently.
type directWriter struct {
	raw  syscall.RawConn
	data []byte
	n    int
	do   func(fd uintptr) bool // created once and used by all writes
}

func newDirectWriter(raw syscall.RawConn) *directWriter {
	w := &directWriter{raw: raw}
	w.do = func(fd uintptr) bool {
		if n, err := unix.Write(int(fd), w.data); err == nil {
			w.n = n
		}
		return true
	}
	return w
}

// write returns how many bytes were written. It ignores errors, because the next ordinary write reports them.
func (w *directWriter) write(data []byte) int {
	w.data, w.n = data, 0
	err := w.raw.Write(w.do)
	w.data = nil
	if err != nil {
		return 0
	}
	return w.n
}
