package sse

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/stream"
)

// How much a stream buffers for a reader that does not keep up. Beyond that, the stream is closed. Senders never wait
// for a reader.
const (
	maxQueued      = 4096
	maxQueuedBytes = 16 << 20
)

// KeepAlive is how often a stream sends a comment, so that proxies keep it open.
const KeepAlive = 25 * time.Second

// Event is one message of a stream. Its number is unique in its session, or 0 if the stream cannot be resumed.
type Event struct {
	Number int64
	Text   []byte
}

// Queue holds the messages of one stream that have not been written yet, in order. It has one reader.
type Queue struct {
	Wake chan struct{} // holds a token when there is something to take
	Left func()        // called when the reader has left or has read everything; may be nil

	journal *Journal // records pushed messages, and those delivered after the first push; nil records nothing
	stream  int64    // the stream's number in journal
	primed  bool     // the stream starts with an event that has only an ID

	mu     sync.Mutex
	events []Event
	bytes  int
	begun  bool // the stream has started: something was pushed, or begin was called
	closed bool // nothing more will be read
	held   []func()
	over   bool // Release was called
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{Wake: make(chan struct{}, 1)} }

// Record makes a journal record the stream under the given number. A primed stream starts with an event that has only
// an ID, from which a client can resume. Record must be called at most once, before anything else.
func (q *Queue) Record(j *Journal, stream int64, primed bool) {
	q.journal, q.stream, q.primed = j, stream, primed
}

// Recorded reports whether a journal records the stream.
func (q *Queue) Recorded() bool { return q.journal != nil }

// Push adds a message. If the reader is too far behind, the unread messages are dropped and the stream ends.
func (q *Queue) Push(text []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = true
	q.appendLimited(q.record(text))
}

// begin starts the stream before there is anything to push.
func (q *Queue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.begun {
		return
	}
	q.begun = true
	if q.journal != nil {
		q.journal.begin(q.stream)
	}
}

// replay adds an event that is already recorded.
func (q *Queue) replay(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.appendLimited(e)
}

// Inherit queues the events that the reader of another stream has not received. They are already recorded.
func (q *Queue) Inherit(from *Queue) {
	unsent, _ := from.Take()
	for _, e := range unsent {
		q.replay(e)
	}
}

// deliver adds an answer regardless of the limits, because there are no more answers than calls.
func (q *Queue) deliver(text []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := Event{Text: text}
	if q.begun {
		e = q.record(text)
	}
	if !q.closed {
		q.append(e)
	}
}

func (q *Queue) record(text []byte) Event {
	if q.journal == nil {
		return Event{Text: text}
	}
	return q.journal.Add(q.stream, text)
}

// appendLimited appends an event within the limits. It accepts an event of any size if the queue is empty, because an
// app's answer may be larger than maxQueuedBytes.
func (q *Queue) appendLimited(e Event) {
	switch {
	case q.closed:
	case len(q.events) >= maxQueued || q.bytes > 0 && q.bytes+len(e.Text) > maxQueuedBytes:
		q.events, q.bytes, q.closed = nil, 0, true
		q.Signal()
	default:
		q.append(e)
	}
}

func (q *Queue) append(e Event) {
	q.events, q.bytes = append(q.events, e), q.bytes+len(e.Text)
	q.Signal()
}

// Take removes and returns the queued events, and reports whether more may come.
func (q *Queue) Take() (events []Event, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, q.events, q.bytes = q.events, nil, 0
	return events, !q.closed
}

// Close ends the stream after the queued events.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.Signal()
	if q.begun && q.journal != nil {
		q.journal.end(q.stream)
	}
}

// abandon drops the queued events because the reader has left. Later messages are still recorded if the stream has a
// journal.
func (q *Queue) abandon() {
	q.mu.Lock()
	q.events, q.bytes, q.closed = nil, 0, true
	q.mu.Unlock()
	q.Release()
	if q.Left != nil {
		q.Left()
	}
}

// Hold keeps an answer's memory counted until the reader has read the answer or has left. It then calls release, or
// does so immediately if that has already happened.
func (q *Queue) Hold(release func()) {
	q.mu.Lock()
	over := q.over
	if !over {
		q.held = append(q.held, release)
	}
	q.mu.Unlock()
	if over {
		release()
	}
}

// Release calls the functions that Hold kept. Call it when the memory is counted elsewhere. It is also called when the
// reader leaves.
func (q *Queue) Release() {
	q.mu.Lock()
	held := q.held
	q.held, q.over = nil, true
	q.mu.Unlock()
	for _, release := range held {
		release()
	}
}

// Ended reports whether the stream was closed or its reader has left.
func (q *Queue) Ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Signal wakes the reader.
func (q *Queue) Signal() {
	select {
	case q.Wake <- struct{}{}:
	default:
	}
}

// id returns the ID of an event of this stream as sent to the client, or "" for an event that was not recorded.
func (q *Queue) id(e Event) string {
	if e.Number == 0 {
		return ""
	}
	return EventID(q.stream, e.Number)
}

// CopyTo writes messages as events until the stream is closed or ctx ends.
func (q *Queue) CopyTo(ctx context.Context, w *stream.Writer) {
	beat := time.NewTicker(KeepAlive)
	defer beat.Stop()
	for open := true; open; {
		var events []Event
		select {
		case <-q.Wake:
			events, open = q.Take()
		case <-beat.C:
			_ = w.Comment() // a failure ends ctx
		case <-ctx.Done():
			return
		}
		for _, e := range events {
			if w.EventWithID(q.id(e), "message", e.Text) != nil {
				return
			}
		}
	}
}

// frame encodes events as server-sent events.
func (q *Queue) frame(events []Event) []byte {
	var b bytes.Buffer
	for _, e := range events {
		// Line breaks are white space in JSON. Replacing them puts a message on one line.
		text := bytes.ReplaceAll(bytes.ReplaceAll(e.Text, []byte{'\r'}, []byte{' '}), []byte{'\n'}, []byte{' '})
		if id := q.id(e); id != "" {
			b.WriteString("id: " + id + "\n")
		}
		b.WriteString("event: message\ndata: ")
		b.Write(text)
		b.WriteString("\n\n")
	}
	return b.Bytes()
}
