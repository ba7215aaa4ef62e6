package apps

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// errDeadline tells the manager's own deadline from the caller's.
var errDeadline = errors.New("the app did not answer in time")

// Call asks an app.
//
// A call that finds the app starting or restarting waits for it, Options.RestartWait at most. One
// that is in flight when the app dies fails at once, and is never repeated: it may have had its
// effect. A call that has been silent for Options.CallTimeout is given up: the app is told to cancel
// it and goes on. Progress that the caller takes is a sign of life, and while the caller's own
// client is asked something the clock stands still.
//
// Errors: core.CodeNotFound without such an app; core.CodeUnavailable when the app does not run,
// died, was too slow, answered with too much or has too many calls in flight;
// core.CodeBadRequest for params that are no object; *rpc.Error as the app answered; ctx's
// error when the caller gave up.
func (y *Manager) Call(ctx context.Context, workspace, server string, c Call) (json.RawMessage, error) {
	a, err := y.find(workspace, server)
	if err != nil {
		return nil, err
	}
	if c.Client != nil && c.Client.stateless {
		if result, resumed, err := a.comeBack(ctx, c); resumed {
			return result, err
		}
	}
	conn := a.conn()
	if conn == nil || !a.slot() {
		if conn, err = a.queue(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { <-a.calls }()
	limit, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := &caller{parent: limit, client: c.Client, asker: c.Asker, limit: y.o.CallTimeout}
	k.start(func() { cancel(errDeadline) })
	defer k.end()
	c.Notify = k.hearing(c.Notify)
	result, conn, err := a.carry(limit, conn, c, k)
	if err != nil {
		return nil, a.callError(ctx, limit, conn, c.Method, err)
	}
	return result, nil
}

// carry makes the call over the instance that is right for its client, which it returns besides.
func (a *app) carry(ctx context.Context, shared instance, c Call, k *caller) (json.RawMessage, instance, error) {
	conn, leave, err := a.route(ctx, shared, k)
	if err != nil {
		return nil, shared, err
	}
	defer leave()
	if c.Client != nil && c.Client.stateless && !conn.Info().Stateless && parks(c.Method) {
		result, err := a.park(ctx, conn, c)
		return result, conn, err
	}
	r := link.Request{Method: c.Method, Params: c.Params, Notify: c.Notify, For: k, Mirrors: c.Mirrors}
	if !conn.Info().Stateless || c.Client != nil && c.Client.stateless {
		result, err := conn.Do(ctx, r)
		return result, conn, err
	}
	if c.Asker != nil && c.Client != nil {
		r.Capabilities = c.Client.capabilities
	}
	result, err := a.rounds(ctx, conn, r, k)
	return result, conn, err
}

// route picks the instance for a call: the shared one, unless the caller speaks the other era of
// MCP or has a client that this app asks. An app that cannot run twice serves all with the one.
func (a *app) route(ctx context.Context, shared instance, k *caller) (conn instance, leave func(), err error) {
	none := func() {}
	key, apart := a.belongs(shared, k.client, k.asker)
	if !apart {
		return shared, none, nil
	}
	x, leave, err := a.manager.annexes.enter(ctx, key, false, k)
	switch {
	case errors.Is(err, errAnnex) && ctx.Err() == nil:
		return shared, none, nil
	case err != nil:
		return nil, nil, err
	case k.client.stateless && !x.conn.Info().Stateless: // it shook hands after all
		a.learn(func(t *traits) { t.sessions = true })
		leave()
		a.manager.annexes.discard(x)
		return shared, none, nil
	}
	return x.conn, leave, nil
}

// belongs tells which instance a call is for, unless that is the shared one (apart is false).
func (a *app) belongs(shared instance, client *Client, asker Asker) (key annexKey, apart bool) {
	key.app = a
	if client == nil || shared.Info().Stateless {
		return key, false
	}
	known := a.manager.memory.of(a.now.Load().record)
	switch {
	case client.stateless:
		return key, !known.sessions
	case asker != nil && client.session != "" && client.can&known.asks != 0:
		key.session = client.session
		return key, true
	}
	return key, false
}

// conn is the app's connection when it can be called now, else nil.
func (a *app) conn() instance {
	conn := a.now.Load().conn
	if conn == nil {
		return nil
	}
	select {
	case <-conn.Done(): // died, and the supervisor is about to say so
		return nil
	default:
		return conn
	}
}

// slot takes a place for a call if one is free.
func (a *app) slot() bool {
	select {
	case a.calls <- struct{}{}:
		return true
	default:
		return false
	}
}

// queue waits for a running app and a free place, and holds the place when it returns no error.
func (a *app) queue(ctx context.Context) (instance, error) {
	patience := time.NewTimer(a.manager.o.RestartWait)
	defer patience.Stop()
	select {
	case a.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-patience.C:
		return nil, unavailable(time.Second, "app %s is busy: %d calls are in flight", a.key.name, a.manager.o.MaxCalls)
	}
	conn, err := a.ready(ctx, patience.C)
	if err != nil {
		<-a.calls
	}
	return conn, err
}

// Arrives waits, Options.RestartWait at most, for an app that is starting and has not yet told what it
// offers, and reports whether it runs now. It does not wait for any other. core.CodeUnavailable when
// the app is starting still.
func (y *Manager) Arrives(ctx context.Context, workspace, server string) (bool, error) {
	if err := y.abreast(ctx, key{workspace, server}); err != nil {
		return false, err
	}
	a, err := y.find(workspace, server)
	if err != nil {
		return false, nil
	}
	now := a.now.Load()
	coming := now.state == core.StateStarting || now.state == core.StateCrashed
	if !coming || len(differing(&now.offer, &core.Offer{})) > 0 {
		return false, nil
	}
	patience := time.NewTimer(y.o.RestartWait)
	defer patience.Stop()
	if _, err := a.ready(ctx, patience.C); err != nil {
		if state := a.now.Load().state; ctx.Err() == nil && (state == core.StateStopped || state == core.StateDead) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// ready waits until the app runs.
func (a *app) ready(ctx context.Context, patience <-chan time.Time) (instance, error) {
	for {
		v := a.now.Load()
		switch v.state {
		case core.StateStopped:
			return nil, unavailable(0, "app %s is stopped; start it first", a.key.name)
		case core.StateDead:
			return nil, unavailable(0, "app %s is dead: its restart attempts are used up; start it by hand", a.key.name)
		case core.StateRunning:
			if conn := a.conn(); conn != nil {
				return conn, nil
			}
		default:
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience:
			return nil, unavailable(time.Second, "app %s is %s and did not come up within %v", a.key.name, v.state, a.manager.o.RestartWait)
		}
	}
}

// callError says what became of a call that has no result.
func (a *app) callError(ctx, limit context.Context, conn instance, method string, err error) error {
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		a.refused(failure)
		return failure
	}
	known, ok := errors.AsType[*core.Error](err)
	late := errors.Is(err, errDeadline) || errors.Is(context.Cause(limit), errDeadline)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return known
	case errors.Is(err, context.Canceled) && !late:
		return err
	case late:
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.name+" did not answer "+method+" within "+a.manager.o.CallTimeout.String()+"; the call was cancelled")
	case errors.Is(err, link.ErrClosed) || closed(conn.Done()):
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.name+" stopped while the call was running; it was not repeated").WithRetryAfter(time.Second)
	case errors.Is(err, link.ErrParams):
		return core.Wrap(core.CodeBadRequest, err, link.ErrParams.Error())
	}
	for _, known := range []error{link.ErrBusy, link.ErrTooLarge, link.ErrMalformed} {
		if errors.Is(err, known) {
			return core.Wrap(core.CodeUnavailable, err, "app "+a.key.name+": "+known.Error())
		}
	}
	if r, ok := errors.AsType[*link.RemoteError](err); ok {
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.name+" could not be asked: "+r.Error())
	}
	a.log.Warn("A call failed below the app", "method", method, "error", err)
	return core.Wrap(core.CodeUnavailable, err, "app "+a.key.name+" could not be asked")
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func unavailable(after time.Duration, format string, args ...any) error {
	return core.Errorf(core.CodeUnavailable, format, args...).WithRetryAfter(after)
}
