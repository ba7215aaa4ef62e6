package apps

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
)

// Pending is a call that was sent. Its Wait must be called, once.
type Pending struct {
	app      *app
	instance instance.Instance
	method   string
	pending  *link.Pending
	inFlight interact.InFlight
}

// sender is an instance whose calls can be sent without waiting for the answer.
type sender interface {
	Start(ctx context.Context, r link.Request) (*link.Pending, error)
}

// Send sends a call that is a single request to the app's shared instance; Wait then returns its
// result. For every other call it returns nil, and nothing has been done. wake receives, without
// blocking, each time there is something for Wait to take.
func (m *Manager) Send(ctx context.Context, workspace, server string, c interact.Call, wake chan struct{}) (*Pending, error) {
	a, err := m.find(workspace, server)
	if err != nil {
		return nil, err
	}
	in := a.current()
	out, ok := in.(sender)
	if !ok || interact.MayResume(&c) || !a.dialog.NeedsOnlyShared(in, &c) || !a.AcquireSlot() {
		return nil, nil
	}
	p := &Pending{app: a, instance: in, method: c.Method}
	p.inFlight.Init(ctx, &c, m.o.CallTimeout)
	p.pending, err = out.Start(ctx, link.Request{
		Method: c.Method, Params: c.Params, Notify: p.inFlight.WithClock(c.Notify), Caller: &p.inFlight, Mirrors: c.Mirrors, Wake: wake,
	})
	if err != nil {
		a.ReleaseSlot()
		if errors.Is(err, link.ErrQueueFull) {
			return nil, nil
		}
		return nil, a.CallError(ctx, ctx, in, c.Method, err)
	}
	p.inFlight.StartClock(p.giveUp)
	return p, nil
}

func (p *Pending) giveUp() { p.pending.Cancel(interact.ErrTimeout) }

// Answered reports whether Wait would not wait any more.
func (p *Pending) Answered() bool { return p.pending.Answered() }

// Wait returns the result of the call, with the errors of Call.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	defer func() {
		p.inFlight.Finish()
		p.app.ReleaseSlot()
	}()
	result, err := p.pending.Wait(ctx)
	if err != nil {
		return nil, p.app.CallError(ctx, ctx, p.instance, p.method, err)
	}
	return result, nil
}
