package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/link/stdio"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// A sender sends messages. It returns as soon as a message is on its way; a call that cannot be sent later
// is finished with the error.
type sender interface {
	send(ctx context.Context, c *call, r framing.Request) error
	sendCancelled(ctx context.Context, sender string, id int64, reason string)
}

// Request is one call of an app.
type Request struct {
	Method string
	Target string                 // the tool or prompt that the request names, for its span; "" for none
	Params json.RawMessage        // one JSON object, or empty for none
	Notify func(rpc.Notification) // nil for a caller that takes no notifications
	Sender string                 // the user whose call it is: the requests of all users take turns; "" for the server itself
	Caller any                    // Question.Callers names it; nil for a call of the server itself

	// Capabilities are those of the caller's client, for a connection of StatelessVersion, whose requests
	// carry them. nil is none. Params that have them already are not changed.
	Capabilities json.RawMessage

	// Mirrors are the arguments of a tools/call that a remote server of StatelessVersion reads from
	// headers as well.
	Mirrors []core.Mirror

	// Wake, for Start, receives without blocking each time Wait has something to take: a notification or
	// the answer. It must hold one. With it Start does not wait either: where it would have to, it fails
	// with ErrQueueFull. nil is a channel of the call's own.
	Wake chan struct{}

	begun func(id int64) // receives the call's id before it is sent; nil for nothing
}

// Call is Start and Wait: it sends a request and waits for the answer. It returns the raw result; an
// *rpc.Error that the app answered with; ErrClosed when the connection is closed; or ctx's error, after
// which the app is notified (notifications/cancelled) and a late answer is discarded.
//
// Params are sent unchanged except for params._meta: the progress token is replaced by one of the link's
// own, and members about the revision are added or removed as the connection's revision requires.
// Notifications of the call reach Notify one after the other, in wire order, with the caller's token, and
// always before Call returns. A log message (notifications/message) names no call: it is given to the only
// call in flight, and to OnNotification when there are several.
func (l *Link) Call(ctx context.Context, r Request) (json.RawMessage, error) {
	p, err := l.Start(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Pending is a call that is in flight. Its Wait must be called once.
type Pending struct {
	call
	link   *Link
	method string
	began  time.Time // zero when nothing is measured
	notify func(rpc.Notification)
	span   tracing.Span
}

// Start sends a request. Pending.Wait returns its answer. Within a trace the app gets the trace context of
// the request's span in params._meta.
func (l *Link) Start(ctx context.Context, r Request) (*Pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, span := l.startSpan(ctx, &r)
	p, err := l.start(ctx, r)
	if err != nil {
		span.EndMCPError(err)
		return nil, err
	}
	p.span = span
	return p, nil
}

// start sends a request whose span was started.
func (l *Link) start(ctx context.Context, r Request) (*Pending, error) {
	out, err := l.outgoing(r, tracing.WireOf(ctx))
	if err != nil {
		return nil, err
	}
	out.Sender, out.NoWait = r.Sender, r.Wake != nil
	p := &Pending{link: l, notify: r.Notify, method: r.Method}
	if l.o.Measure != nil {
		p.began = time.Now()
	}
	c := &p.call
	c.caller, c.sender, c.token, c.silent, c.wake = r.Caller, r.Sender, out.CallerToken(), r.Notify == nil, r.Wake
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	if err := l.addCall(c); err != nil {
		return nil, err
	}
	if r.begun != nil {
		r.begun(c.id)
	}
	if err := l.out.send(ctx, c, out); err != nil {
		l.endCall(c)
		return nil, l.sendError(ctx, err)
	}
	return p, nil
}

// Answered reports whether Wait would return at once.
func (p *Pending) Answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finished
}

// Cancel ends the call with err, unless its answer is there. Wait notifies the app.
func (p *Pending) Cancel(err error) {
	p.finish(answer{err: cancelled{err}})
}

// cancelled is the answer of a call that was cancelled and of which the app is not notified yet.
type cancelled struct{ error }

// Wait returns the answer, with the errors of Call. Request.Wake is not used after Wait has begun.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	defer p.link.endCall(&p.call)
	p.mu.Lock()
	if !p.finished {
		p.wake = make(chan struct{}, 1)
	}
	p.mu.Unlock()
	result, err := p.link.await(ctx, &p.call, p.notify)
	if p.span.Recording() {
		p.span.EndMCP(err, result)
	}
	if !p.began.IsZero() {
		p.link.o.Measure(p.method, time.Since(p.began), err)
	}
	return result, err
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

// addCall gives the call its id and adds it to those in flight.
func (l *Link) addCall(c *call) error {
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

func (l *Link) endCall(c *call) {
	l.mu.Lock()
	delete(l.calls, c.id)
	l.mu.Unlock()
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
		return ctx.Err()
	}
	if closed := l.Err(); closed != nil {
		return closed
	}
	if errors.Is(err, stdio.ErrClosed) {
		return ErrClosed
	}
	return err
}

// await waits for the answer, and gives notifications to notify meanwhile.
func (l *Link) await(ctx context.Context, c *call, notify func(rpc.Notification)) (json.RawMessage, error) {
	for {
		queued, finished := c.takeQueued()
		if err := l.deliver(queued, notify); err != nil {
			if !finished {
				l.out.sendCancelled(ctx, c.sender, c.id, "the caller failed")
			}
			return nil, err
		}
		if finished {
			return l.result(ctx, c)
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.finish(answer{err: cancelled{ctx.Err()}})
		}
	}
}

// result returns the answer of a finished call, and notifies the app of one that was cancelled.
func (l *Link) result(ctx context.Context, c *call) (json.RawMessage, error) {
	if ended, ok := c.answer.err.(cancelled); ok { //nolint:errorlint // it is never wrapped
		l.out.sendCancelled(ctx, c.sender, c.id, ended.Error())
		return nil, ended.error
	}
	return c.answer.result, c.answer.err
}

// deliver gives notifications to their caller. A caller that panics loses only its own call.
func (l *Link) deliver(queued []queuedNotification, notify func(rpc.Notification)) (err error) {
	if len(queued) == 0 {
		return nil
	}
	defer func() {
		closeMarks(queued)
		if r := recover(); r != nil {
			l.log.Error("a notification's receiver panicked; its call was ended", "app", l.o.Name, "panic", r)
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
