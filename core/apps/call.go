package apps

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

// errDeadline tells the yard's own deadline from the caller's.
var errDeadline = errors.New("the app did not answer in time")

// Call asks an app. Result and params are raw: nothing of them is decoded or lost.
//
// A call that finds the app starting or restarting waits for it, Options.RestartWait at most. One
// that is in flight when the app dies fails at once, and is never repeated: it may have had its
// effect. A call that has been silent for Options.CallTimeout is given up: the app is told to cancel
// it and goes on. Progress that the caller takes is a sign of life.
//
// Errors: core.CodeNotFound without such an app; core.CodeUnavailable when the app does not run,
// died, was too slow, answered with too much or has too many calls in flight;
// core.CodeBadRequest for params that are no object; *link.RPCError as the app answered; ctx's
// error when the caller gave up.
func (y *Yard) Call(ctx context.Context, workspace, server, method string, params json.RawMessage, notify func(link.Notification)) (json.RawMessage, error) {
	a, err := y.find(workspace, server)
	if err != nil {
		return nil, err
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
	deadline := time.AfterFunc(y.o.CallTimeout, func() { cancel(errDeadline) })
	defer deadline.Stop()
	if notify != nil {
		told := notify
		notify = func(n link.Notification) {
			deadline.Reset(y.o.CallTimeout)
			told(n)
		}
	}
	result, err := conn.Call(limit, method, params, notify)
	if err != nil {
		return nil, a.callError(ctx, limit, conn, method, err)
	}
	return result, nil
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
	patience := time.NewTimer(a.yard.o.RestartWait)
	defer patience.Stop()
	select {
	case a.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-patience.C:
		return nil, unavailable(time.Second, "app %s is busy: %d calls are in flight", a.key.name, a.yard.o.MaxCalls)
	}
	conn, err := a.ready(ctx, patience.C)
	if err != nil {
		<-a.calls
	}
	return conn, err
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
			return nil, unavailable(time.Second, "app %s is %s and did not come up within %v", a.key.name, v.state, a.yard.o.RestartWait)
		}
	}
}

// callError says what became of a call that has no result.
func (a *app) callError(ctx, limit context.Context, conn instance, method string, err error) error {
	if rpc, ok := errors.AsType[*link.RPCError](err); ok {
		return rpc
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(limit), errDeadline):
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.name+" did not answer "+method+" within "+a.yard.o.CallTimeout.String()+"; the call was cancelled")
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
	a.log.Warn("A call failed below the app.", "method", method, "error", err)
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
