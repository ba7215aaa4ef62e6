package link

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
)

// A sender puts messages on the wire. It returns as soon as a message is on its way, and an answer
// to a call that could not be sent is given to the call itself.
type sender interface {
	call(ctx context.Context, c *call, r request) error
	cancelled(ctx context.Context, id int64, reason string)
}

// call is one call in flight.
type call struct {
	id     int64
	caller any    // for whom; nil for a call of the server's own
	token  []byte // the caller's progress token; nil when it gave none
	notes  *notes // nil when the caller wants no notifications
	alone  bool   // no other call was in flight when this one began
	stop   func() // ends what a sender keeps for the call; nil when there is nothing

	settled atomic.Bool
	answer  answer        // read after done
	done    chan struct{} // closed when the answer is there
}

type answer struct {
	result json.RawMessage
	err    error
}

// finish hands over the answer. Only the first one counts.
func (c *call) finish(a answer) {
	if c.settled.CompareAndSwap(false, true) {
		c.answer = a
		close(c.done)
	}
}

// notes are the notifications that a call has still to hand to its caller, in wire order. The
// reader must not wait for a slow caller: beyond maxQueuedNotes, or maxQueuedBytes of params, the
// oldest are lost.
type notes struct {
	mu   sync.Mutex
	list []Notification
	size int           // bytes of params in list
	wake chan struct{} // holds one
}

func (n *notes) push(note Notification) (lost bool) {
	n.mu.Lock()
	n.size += len(note.Params)
	for len(n.list) > 0 && (len(n.list) >= maxQueuedNotes || n.size > maxQueuedBytes) {
		n.size -= len(n.list[0].Params)
		n.list, lost = n.list[1:], true
	}
	n.list = append(n.list, note)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return lost
}

func (n *notes) drain() []Notification {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list, n.size = nil, 0
	return list
}

// Request is one call of a bundle.
type Request struct {
	Method string
	Params json.RawMessage    // one JSON object, or empty for none
	Notify func(Notification) // nil for a caller that wants no notifications
	For    any                // who calls: a Question of the bundle names them; nil for the server itself

	// Capabilities are what For's client can do, for a bundle that wants to see that with each
	// request (StatelessVersion). nil is nothing. Params that say it themselves are left alone.
	Capabilities json.RawMessage

	// Mirrors are the arguments of a tools/call that a remote server of StatelessVersion wants to see
	// in headers as well.
	Mirrors []core.Mirror

	begun func(id int64) // told the call's id before it is sent; nil
}

// Call is Do for a call of the server's own.
func (l *Link) Call(ctx context.Context, method string, params json.RawMessage, notify func(Notification)) (json.RawMessage, error) {
	return l.Do(ctx, Request{Method: method, Params: params, Notify: notify})
}

// Do sends one request and waits for its answer: the raw result, an *RPCError that the bundle
// answered with, ErrClosed when the connection is gone, or ctx's error, after which the bundle is
// told (notifications/cancelled) and a late answer is ignored.
//
// Params are sent as they are, but for what params._meta holds: a progress token is replaced by one
// of our own, and what a request says of its revision is put there or taken away as the connection's
// revision wants it. Notifications about the call reach Notify one after the other, in wire order,
// with the caller's token, and always before Do returns. A log message (notifications/message)
// names no call: it is taken to be about a call when that is the only one in flight, and goes to
// OnNotification otherwise.
func (l *Link) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := l.outgoing(r)
	if err != nil {
		return nil, err
	}
	c := &call{caller: r.For, token: out.callerToken(), done: make(chan struct{})}
	if r.Notify != nil {
		c.notes = &notes{wake: make(chan struct{}, 1)}
	}
	if err := l.begin(c); err != nil {
		return nil, err
	}
	defer l.end(c)
	if r.begun != nil {
		r.begun(c.id)
	}
	if err := l.out.call(ctx, c, out); err != nil {
		return nil, l.sendError(ctx, err)
	}
	return l.await(ctx, c, r.Notify)
}

// Notify tells the bundle something that has no answer.
func (l *Link) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.conn.Write(ctx, &jsonrpc.Request{Method: method, Params: params}); err != nil {
		return scrub(err)
	}
	return nil
}

// begin gives the call its id and a place among those in flight.
func (l *Link) begin(c *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return l.err
	}
	if len(l.calls) >= l.o.MaxCalls {
		return ErrBusy
	}
	c.id, c.alone = l.nextID.Add(1), len(l.calls) == 0
	l.calls[c.id] = c
	return nil
}

func (l *Link) end(c *call) {
	l.mu.Lock()
	delete(l.calls, c.id)
	l.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

func (l *Link) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if closed := l.Err(); closed != nil {
		return closed
	}
	return err
}

// await waits for the answer, handing over notifications meanwhile.
func (l *Link) await(ctx context.Context, c *call, notify func(Notification)) (json.RawMessage, error) {
	var wake <-chan struct{}
	if c.notes != nil {
		wake = c.notes.wake
	}
	for {
		select {
		case <-c.done:
			return l.conclude(c, notify)
		case <-wake:
			if err := l.handOver(c, notify); err != nil {
				l.out.cancelled(ctx, c.id, "the caller failed")
				return nil, err
			}
		case <-ctx.Done():
			l.out.cancelled(ctx, c.id, ctx.Err().Error())
			return nil, ctx.Err()
		case <-l.done:
			c.finish(answer{err: l.err}) // an answer that came before the end stands
			<-c.done
			return l.conclude(c, notify)
		}
	}
}

// conclude hands over what came before the answer, then the answer.
func (l *Link) conclude(c *call, notify func(Notification)) (json.RawMessage, error) {
	if err := l.handOver(c, notify); err != nil {
		return nil, err
	}
	return c.answer.result, c.answer.err
}

// handOver gives the caller what has arrived. A caller that panics loses its call and nothing else.
func (l *Link) handOver(c *call, notify func(Notification)) (err error) {
	if c.notes == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("a notification's receiver panicked; its call was ended", "app", l.o.Name, "panic", r)
			err = fmt.Errorf("handling a notification failed: %v", r)
		}
	}()
	for _, note := range c.notes.drain() {
		notify(note)
	}
	return nil
}
