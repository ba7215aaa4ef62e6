package link

import (
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// call is one call in flight.
type call struct {
	id     int64
	caller any    // nil for a call of the server's own
	sender string // "" for the server itself
	token  []byte // the caller's progress token; nil when there is none
	silent bool   // the caller takes no notifications
	stop   func() // releases what a sender keeps for the call; nil when there is nothing

	mu       sync.Mutex
	wake     chan struct{} // holds one; receives when there is something to take
	finished bool
	answer   answer // once it is finished
	notified bool   // there was a notification for the caller
	queued   []queuedNotification
	size     int // bytes of params in queued
}

// queuedNotification is a notification that a caller has not taken yet, or a mark between two of them.
type queuedNotification struct {
	rpc.Notification
	reached chan struct{} // of a mark: closed when everything before it was taken or lost
}

// closeMarks closes the marks among notifications that are not going to be taken.
func closeMarks(queued []queuedNotification) {
	for _, n := range queued {
		if n.reached != nil {
			close(n.reached)
		}
	}
}

type answer struct {
	result json.RawMessage
	err    error
}

// finish sets the answer. Only the first one counts.
func (c *call) finish(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return
	}
	c.finished, c.answer = true, a
	c.signal()
}

// queue keeps a notification until its caller takes it. The reader must not wait for a slow caller: beyond
// maxQueuedNotifications, or maxQueuedBytes of params, the oldest are lost.
func (c *call) queue(n rpc.Notification) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += len(n.Params)
	for len(c.queued) > 0 && (len(c.queued) >= maxQueuedNotifications || c.size > maxQueuedBytes) {
		closeMarks(c.queued[:1])
		c.size -= len(c.queued[0].Params)
		c.queued, lost = c.queued[1:], true
	}
	c.notified = true
	c.queued = append(c.queued, queuedNotification{Notification: n})
	c.signal()
	return lost
}

// mark returns a channel that is closed when the caller has taken everything that came before, or when the
// call has ended.
func (c *call) mark() <-chan struct{} {
	n := queuedNotification{reached: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.notified {
		c.queued = append(c.queued, n)
		c.signal()
	} else {
		close(n.reached)
	}
	return n.reached
}

// signal wakes the goroutine that waits. mu is held.
func (c *call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// takeQueued removes and returns the notifications, and reports whether the answer is there.
func (c *call) takeQueued() (queued []queuedNotification, finished bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	queued, c.queued, c.size = c.queued, nil, 0
	return queued, c.finished
}
