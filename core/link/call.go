package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// A sender sends messages. It returns as soon as a message is on its way. If sending fails later, the call
// finishes with that error.
type sender interface {
	send(ctx context.Context, c *call, r rpc.Request) error
	sendCancelled(ctx context.Context, sender string, id int64, reason string)
}

// call is a pending request.
type call struct {
	id     int64
	caller Caller // nil for a request that the server makes itself
	sender string // "" for the server itself
	token  []byte // the caller's progress token; nil if there is none
	silent bool   // the caller does not want notifications
	stop   func() // releases the resources that a sender keeps for the call; may be nil

	wake chan struct{} // capacity 1; receives when there is something to take

	mu        sync.Mutex
	finished  bool
	result    json.RawMessage // set once finished
	err       error
	unmatched string // a response that arrived in the meantime and matches no request, such as "a response with the id 7"; "" for none
	notified  bool   // a notification was received for the caller
	queued    []queuedNotification
	size      int // bytes of params in queued
}

// queuedNotification is a notification that a caller has not taken yet, or a mark in the queue.
type queuedNotification struct {
	rpc.Notification
	reached chan struct{} // for a mark: closed when everything before it has been taken or dropped
}

// Call sends a request and waits for the response. It returns the raw result or an error: an *rpc.Error if the app
// answered with an error, ErrClosed if the connection is closed, or the cause if ctx ends. When ctx ends, the app is
// notified (notifications/cancelled) and a late response is discarded.
//
// Params are sent unchanged except for params._meta: the link replaces the progress token with its own, and
// adds or removes revision-specific members as the connection's revision requires. Within a trace, the app
// receives the trace context of the request's span.
//
// The request's notifications reach Notify one at a time, in wire order, with the caller's token, and always before
// Call returns. A log message (notifications/message) does not refer to a request. It goes to the only pending request,
// or to OnNotification if there are several.
func (l *Link) Call(ctx context.Context, r Request) (result json.RawMessage, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ctx, span := l.startSpan(ctx, &r)
	began := time.Now()
	c, err := l.start(ctx, r)
	if err == nil {
		result, err = l.await(ctx, c, r.Notify)
		if l.o.Measure != nil {
			l.o.Measure(r.Method, time.Since(began), err)
		}
	}
	if span.Recording() {
		span.EndMCP(err, result)
	}
	return result, err
}

// start sends a request. The caller must call await afterwards.
func (l *Link) start(ctx context.Context, r Request) (*call, error) {
	out, err := l.outgoing(r, tracing.WireOf(ctx))
	if err != nil {
		return nil, err
	}
	c := &call{caller: r.Caller, sender: r.Sender, token: out.CallerToken(), silent: r.Notify == nil, wake: make(chan struct{}, 1)}
	if err := l.add(c); err != nil {
		return nil, err
	}
	if err := l.out.send(ctx, c, out); err != nil {
		l.end(c)
		return nil, l.sendError(ctx, err)
	}
	return c, nil
}

// await waits for the response and passes notifications to notify in the meantime.
func (l *Link) await(ctx context.Context, c *call, notify func(rpc.Notification)) (json.RawMessage, error) {
	defer l.end(c)
	for {
		queued, finished := c.takeQueued()
		if err := l.deliver(queued, notify); err != nil {
			if !finished {
				l.out.sendCancelled(ctx, c.sender, c.id, "the caller failed")
			}
			return nil, err
		}
		if finished {
			return c.result, c.err
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			if c.finish(nil, c.unanswered(context.Cause(ctx))) {
				l.out.sendCancelled(ctx, c.sender, c.id, context.Cause(ctx).Error())
			}
		}
	}
}

// add assigns the call an id and adds it to the pending calls.
func (l *Link) add(c *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return l.err
	}
	if len(l.calls) >= l.o.MaxCalls {
		return ErrBusy
	}
	c.id = l.nextID.Add(1)
	l.calls[c.id] = c
	return nil
}

// remove removes a call from the pending calls, so that a second response is discarded.
func (l *Link) remove(id int64) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[id]
	delete(l.calls, id)
	return c
}

func (l *Link) end(c *call) {
	l.remove(c.id)
	c.mu.Lock()
	closeMarks(c.queued)
	c.queued, c.notified = nil, false
	c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

func (l *Link) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if closed := l.Err(); closed != nil {
		return closed
	}
	if errors.Is(err, stdio.ErrClosed) {
		return ErrClosed
	}
	return err
}

// deliver passes notifications to their caller. A panic in a caller's handler affects only its own call.
func (l *Link) deliver(queued []queuedNotification, notify func(rpc.Notification)) (err error) {
	if len(queued) == 0 {
		return nil
	}
	defer func() {
		closeMarks(queued)
		if r := recover(); r != nil {
			l.log.Error("a notification handler panicked; its call was cancelled", "panic", r)
			err = fmt.Errorf("handling a notification failed: %v", r)
		}
	}()
	for ; len(queued) > 0; queued = queued[1:] {
		if n := queued[0]; n.reached == nil {
			notify(n.Notification)
		} else {
			close(n.reached)
		}
	}
	return nil
}

// Notify sends the app a notification.
func (l *Link) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.conn.Write(ctx, &jsonrpc.Request{Method: method, Params: params}); err != nil {
		return remote.SafeError(err)
	}
	return nil
}

// finish sets the response and reports whether it was the first. Later responses are ignored.
func (c *call) finish(result json.RawMessage, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return false
	}
	c.finished, c.result, c.err = true, result, err
	c.signal()
	return true
}

// missed records a response that may have been meant for this call.
func (c *call) missed(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unmatched = what
}

// unanswered returns the error for a call that ends without a response.
func (c *call) unanswered(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unmatched == "" {
		return cause
	}
	return &UnmatchedError{Cause: cause, Response: c.unmatched}
}

// UnmatchedError is the error of a call that ended without a response while the app sent a response that matches no
// request.
type UnmatchedError struct {
	Cause    error
	Response string // for example "a response with the id 7"
}

func (e *UnmatchedError) Error() string { return e.Cause.Error() + "; " + e.Sentence() }

// Sentence describes the app's mistake in a sentence for the caller.
func (e *UnmatchedError) Sentence() string {
	return "the app sent " + e.Response + ", which matches no request"
}

func (e *UnmatchedError) Unwrap() error { return e.Cause }

// queue keeps a notification until its caller takes it. The reader must not wait for a slow caller: beyond
// maxQueuedNotifications, or maxQueuedBytes of params, the oldest are dropped.
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

// mark returns a channel that is closed when the caller has taken everything queued so far, or when the call
// has ended.
func (c *call) mark() <-chan struct{} {
	n := queuedNotification{reached: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.queued) - 1; last >= 0 && c.queued[last].reached != nil { // repeated questions share one mark
		return c.queued[last].reached
	}
	if c.notified {
		c.queued = append(c.queued, n)
		c.signal()
	} else {
		close(n.reached)
	}
	return n.reached
}

// closeMarks closes the marks among notifications that will not be delivered.
func closeMarks(queued []queuedNotification) {
	for _, n := range queued {
		if n.reached != nil {
			close(n.reached)
		}
	}
}

// signal wakes the waiting goroutine. The caller holds mu.
func (c *call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// takeQueued removes and returns the notifications, and reports whether the call has finished.
func (c *call) takeQueued() (queued []queuedNotification, finished bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	queued, c.queued, c.size = c.queued, nil, 0
	return queued, c.finished
}
