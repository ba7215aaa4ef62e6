package apps

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
)

// PendingCall is a call that was started. Its Wait must be called, once.
type PendingCall interface {
	// Sent reports whether the request was sent to its app: interact.Call.Wake then receives each time
	// there is something for Wait to take. Otherwise nothing has been done yet, and Wait makes the call.
	Sent() bool
	// Answered reports whether a call that was sent has its answer, so that Wait does not wait.
	Answered() bool
	// Wait returns the result of the call.
	Wait(ctx context.Context) (json.RawMessage, error)
}

// pendingCall implements PendingCall.
type pendingCall struct {
	app      *app
	call     interact.Call
	instance instance.Instance // that the request was sent to
	sent     *link.Pending     // nil unless the request was sent
	inFlight interact.InFlight
}

// starter is an instance that can be sent a request without waiting for the answer.
type starter interface {
	Start(ctx context.Context, r link.Request) (*link.Pending, error)
}

// StartCall starts a call of an app, and never waits. The request is sent at once if the call is a single
// request to the shared instance, which runs and has room for it; any other call is made by Wait. The
// errors are those of Call.
func (m *Manager) StartCall(ctx context.Context, workspace, server string, c interact.Call) (PendingCall, error) {
	p, err := m.startCall(ctx, workspace, server, c)
	if err != nil {
		return nil, err // not a nil *pendingCall
	}
	return p, nil
}

func (m *Manager) startCall(ctx context.Context, workspace, server string, c interact.Call) (*pendingCall, error) {
	a, err := m.find(workspace, server)
	if err != nil {
		return nil, err
	}
	p := &pendingCall{app: a, call: c}
	in := a.current()
	out, ok := in.(starter)
	if !ok || interact.MayResume(&c) || !a.dialog.NeedsOnlyShared(in, &c) || !a.AcquireSlot() {
		return p, nil
	}
	wake := c.Wake
	if wake == nil {
		wake = make(chan struct{}, 1)
	}
	p.instance = in
	p.inFlight.Init(ctx, &p.call, m.o.CallTimeout)
	p.sent, err = out.Start(ctx, link.Request{
		Method: c.Method, Target: c.Target, Params: c.Params, Notify: p.inFlight.WithClock(c.Notify), Sender: c.User, Caller: &p.inFlight, Mirrors: c.Mirrors, Wake: wake,
	})
	switch {
	case err == nil:
		p.call.Params = nil // sent; it may be large
		p.inFlight.StartClock(p.onTimeout)
		return p, nil
	case errors.Is(err, link.ErrQueueFull):
		a.ReleaseSlot()
		return p, nil
	}
	a.ReleaseSlot()
	return nil, a.CallError(ctx, ctx, in, c.Method, err)
}

func (p *pendingCall) onTimeout() { p.sent.Cancel(interact.ErrTimeout) }

// Sent implements PendingCall.
func (p *pendingCall) Sent() bool { return p.sent != nil }

// Answered implements PendingCall.
func (p *pendingCall) Answered() bool { return p.sent != nil && p.sent.Answered() }

// Wait implements PendingCall.
func (p *pendingCall) Wait(ctx context.Context) (json.RawMessage, error) {
	if p.sent == nil {
		return p.callNow(ctx)
	}
	result, err := p.sent.Wait(ctx)
	p.inFlight.Finish()
	p.app.ReleaseSlot()
	if err != nil {
		return nil, p.app.CallError(ctx, ctx, p.instance, p.call.Method, err)
	}
	return result, nil
}

// callNow makes a call that StartCall could not send: it resumes a suspended call, or waits for the app, a
// free slot and the instance that the call belongs to.
func (p *pendingCall) callNow(ctx context.Context) (json.RawMessage, error) {
	a := p.app
	if interact.MayResume(&p.call) {
		if result, resumed, err := a.dialog.Resume(ctx, p.call); resumed {
			return result, err
		}
	}
	in := a.current()
	if in == nil || !a.AcquireSlot() {
		var err error
		if in, err = a.queue(ctx); err != nil {
			return nil, err
		}
	}
	defer a.ReleaseSlot()
	limit, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.inFlight.Init(limit, &p.call, a.manager.o.CallTimeout)
	p.inFlight.StartClock(func() { cancel(interact.ErrTimeout) })
	defer p.inFlight.Finish()
	p.call.Notify = p.inFlight.WithClock(p.call.Notify)
	result, used, err := a.dialog.Do(limit, in, p.call, &p.inFlight)
	if err != nil {
		return nil, a.CallError(ctx, limit, used, p.call.Method, err)
	}
	return result, nil
}
