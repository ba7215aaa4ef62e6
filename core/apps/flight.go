package apps

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ropewalk/ropewalk/core/link"
)

// Pending is a call that is on its way. Its Wait must be called, once.
type Pending struct {
	app     *app
	conn    instance
	method  string
	pending *link.Pending
	caller  caller
}

// sender is an instance whose calls have two halves.
type sender interface {
	Send(ctx context.Context, r link.Request) (*link.Pending, error)
}

// Send is the first half of Call for a call that needs to wait for nobody but its app: the other half
// is then the flight's Wait. Every other call gets no flight, and nothing has been done about it. Wake
// receives, without being waited for, each time something has come for Wait to take.
func (y *Manager) Send(ctx context.Context, workspace, server string, c Call, wake chan struct{}) (*Pending, error) {
	a, err := y.find(workspace, server)
	if err != nil {
		return nil, err
	}
	conn := a.conn()
	out, ok := conn.(sender)
	if !ok || !a.plain(conn, c) || !a.slot() {
		return nil, nil
	}
	f := &Pending{app: a, conn: conn, method: c.Method, caller: caller{parent: ctx, client: c.Client, asker: c.Asker, limit: y.o.CallTimeout}}
	f.pending, err = out.Send(ctx, link.Request{Method: c.Method, Params: c.Params, Notify: f.caller.hearing(c.Notify), For: &f.caller, Mirrors: c.Mirrors, Wake: wake})
	if err != nil {
		<-a.calls
		if errors.Is(err, link.ErrCrowded) {
			return nil, nil
		}
		return nil, a.callError(ctx, ctx, conn, c.Method, err)
	}
	f.caller.start(f.tooLate)
	return f, nil
}

// plain tells whether carry would only ask the shared instance.
func (a *app) plain(shared instance, c Call) bool {
	if _, apart := a.belongs(shared, c.Client, c.Asker); apart {
		return false
	}
	return shared.Info().Stateless == (c.Client != nil && c.Client.stateless)
}

func (f *Pending) tooLate() { f.pending.GiveUp(errDeadline) }

// Answered tells whether Wait has nothing to wait for any more.
func (f *Pending) Answered() bool { return f.pending.Answered() }

// Wait is the second half of Call, with its errors.
func (f *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	defer func() {
		f.caller.end()
		<-f.app.calls
	}()
	result, err := f.pending.Wait(ctx)
	if err != nil {
		return nil, f.app.callError(ctx, ctx, f.conn, f.method, err)
	}
	return result, nil
}
