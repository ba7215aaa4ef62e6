package link

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
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
	deaf   bool   // the caller wants no notifications
	stop   func() // ends what a sender keeps for the call; nil when there is nothing

	mu      sync.Mutex
	wake    chan struct{} // holds one; receives when there is something for the one who waits
	settled bool
	answer  answer // once it is settled
	noted   bool   // there was something to hand to the caller
	notes   []note // what still is, in wire order
	size    int    // bytes of params in notes
}

// note is a notification for a caller, or a mark between two of them.
type note struct {
	rpc.Notification
	reached chan struct{} // of a mark: closed when what was before it has been handed over, or is lost
}

// gone lets those go on who wait for marks among notes that will not be handed over.
func gone(notes []note) {
	for _, n := range notes {
		if n.reached != nil {
			close(n.reached)
		}
	}
}

type answer struct {
	result json.RawMessage
	err    error
}

// finish hands over the answer. Only the first one counts.
func (c *call) finish(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled {
		return
	}
	c.settled, c.answer = true, a
	c.rouse()
}

// note keeps a notification until its caller takes it. The reader must not wait for a slow caller:
// beyond maxQueuedNotes, or maxQueuedBytes of params, the oldest are lost.
func (c *call) note(n rpc.Notification) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += len(n.Params)
	for len(c.notes) > 0 && (len(c.notes) >= maxQueuedNotes || c.size > maxQueuedBytes) {
		gone(c.notes[:1])
		c.size -= len(c.notes[0].Params)
		c.notes, lost = c.notes[1:], true
	}
	c.noted = true
	c.notes = append(c.notes, note{Notification: n})
	c.rouse()
	return lost
}

// mark is closed when the caller has everything that came for it before, or the call is over.
func (c *call) mark() <-chan struct{} {
	n := note{reached: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.noted {
		c.notes = append(c.notes, n)
		c.rouse()
	} else {
		close(n.reached)
	}
	return n.reached
}

// rouse wakes the one who waits. mu is held.
func (c *call) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// news is what has come. Notes that are given are given once.
func (c *call) news() (notes []note, settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	notes, c.notes, c.size = c.notes, nil, 0
	return notes, c.settled
}

// Request is one call of a bundle.
type Request struct {
	Method string
	Params json.RawMessage        // one JSON object, or empty for none
	Notify func(rpc.Notification) // nil for a caller that wants no notifications
	Caller any                    // who calls: a Question of the bundle names them; nil for the server itself

	// Capabilities are what For's client can do, for a bundle that wants to see that with each
	// request (StatelessVersion). nil is nothing. Params that say it themselves are left alone.
	Capabilities json.RawMessage

	// Mirrors are the arguments of a tools/call that a remote server of StatelessVersion wants to see
	// in headers as well.
	Mirrors []core.Mirror

	// Wake, when the call is made in two halves, receives each time something has come for Wait to
	// take: a notification, or the answer. It must hold one; a send never blocks. Start does
	// not wait then either: it fails with ErrQueueFull where it would. nil is a channel of the call's own.
	Wake chan struct{}

	begun func(id int64) // receives the call's id before it is sent; nil
}

// Call sends one request and waits for its answer: the raw result, an *rpc.Error that the bundle
// answered with, ErrClosed when the connection is gone, or ctx's error, after which the bundle is
// notified (notifications/cancelled) and a late answer is ignored.
//
// Params are sent as they are, but for what params._meta holds: a progress token is replaced by one
// of our own, and what a request says of its revision is put there or taken away as the connection's
// revision wants it. Notifications about the call reach Notify one after the other, in wire order,
// with the caller's token, and always before Call returns. A log message (notifications/message)
// names no call: it is taken to be about a call when that is the only one in flight, and goes to
// OnNotification otherwise.
func (l *Link) Call(ctx context.Context, r Request) (json.RawMessage, error) {
	p, err := l.Start(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Pending is a call that is on its way. Its Wait must be called, once.
type Pending struct {
	call
	link   *Link
	notify func(rpc.Notification)
}

// Start is the first half of Call: it sends the request. Pending.Wait is the other half.
func (l *Link) Start(ctx context.Context, r Request) (*Pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := l.outgoing(r)
	if err != nil {
		return nil, err
	}
	out.hurry = r.Wake != nil
	p := &Pending{link: l, notify: r.Notify}
	c := &p.call
	c.caller, c.token, c.deaf, c.wake = r.Caller, out.callerToken(), r.Notify == nil, r.Wake
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	if err := l.begin(c); err != nil {
		return nil, err
	}
	if r.begun != nil {
		r.begun(c.id)
	}
	if err := l.out.call(ctx, c, out); err != nil {
		l.end(c)
		return nil, l.sendError(ctx, err)
	}
	return p, nil
}

// Answered tells whether Wait has nothing to wait for any more: the answer or the end of the
// connection is there.
func (p *Pending) Answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled
}

// Cancel ends the call with err, unless its answer is there. The bundle is notified.
func (p *Pending) Cancel(err error) {
	p.finish(answer{err: givenUp{err}})
}

// givenUp is the answer of a call that was given up, of which the bundle is still to be notified.
type givenUp struct{ error }

// Wait is the second half of Call, with its errors. From then on nobody needs to look at Request.Wake.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	defer p.link.end(&p.call)
	p.mu.Lock()
	if !p.settled {
		p.wake = make(chan struct{}, 1)
	}
	p.mu.Unlock()
	return p.link.await(ctx, &p.call, p.notify)
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
	c.id = l.nextID.Add(1)
	l.calls[c.id] = c
	return nil
}

func (l *Link) end(c *call) {
	l.mu.Lock()
	delete(l.calls, c.id)
	l.mu.Unlock()
	c.mu.Lock()
	gone(c.notes)
	c.notes, c.noted = nil, false
	c.mu.Unlock()
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
func (l *Link) await(ctx context.Context, c *call, notify func(rpc.Notification)) (json.RawMessage, error) {
	for {
		notes, settled := c.news()
		if err := l.handOver(notes, notify); err != nil {
			if !settled {
				l.out.cancelled(ctx, c.id, "the caller failed")
			}
			return nil, err
		}
		if settled {
			return l.conclude(ctx, c)
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.finish(answer{err: givenUp{ctx.Err()}})
		}
	}
}

// conclude is the answer.
func (l *Link) conclude(ctx context.Context, c *call) (json.RawMessage, error) {
	if given, ok := c.answer.err.(givenUp); ok { //nolint:errorlint // it is never wrapped
		l.out.cancelled(ctx, c.id, given.Error())
		return nil, given.error
	}
	return c.answer.result, c.answer.err
}

// handOver gives the caller what has arrived. A caller that panics loses its call and nothing else.
func (l *Link) handOver(notes []note, notify func(rpc.Notification)) (err error) {
	if len(notes) == 0 {
		return nil
	}
	defer func() {
		gone(notes)
		if r := recover(); r != nil {
			l.log.Error("a notification's receiver panicked; its call was ended", "app", l.o.Name, "panic", r)
			err = fmt.Errorf("handling a notification failed: %v", r)
		}
	}()
	for ; len(notes) > 0; notes = notes[1:] {
		if n := notes[0]; n.reached == nil {
			notify(n.Notification)
		} else {
			close(n.reached)
		}
	}
	return nil
}
