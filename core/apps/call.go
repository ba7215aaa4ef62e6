package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Call is StartCall and Wait.
//
// A call waits for an app that is starting or restarting, at most Options.RestartWait. A call that is
// in flight when the app dies fails at once and is never repeated, because it may have had its effect.
// A call whose app was silent for Options.CallTimeout is cancelled. Progress that the caller receives
// resets this clock, and it stands still while the caller's own client is asked something.
//
// Errors: core.CodeNotFound without such an app; core.CodeUnavailable when the app does not run, died,
// was too slow, sent too much or has too many calls in flight; core.CodeBadRequest for params that are
// not an object; *rpc.Error as the app sent it; ctx's error when the caller gave up.
func (m *Manager) Call(ctx context.Context, workspace, server string, c interact.Call) (json.RawMessage, error) {
	p, err := m.startCall(ctx, workspace, server, c)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// current returns the shared instance when it can be called now, else nil.
func (a *app) current() instance.Instance {
	in := a.now.Load().instance
	if in == nil || isClosed(in.Done()) { // it died, and the supervisor is about to notice
		return nil
	}
	return in
}

// queue waits for a running app and a free slot, and holds the slot when it returns no error.
func (a *app) queue(ctx context.Context) (in instance.Instance, err error) {
	ctx, span := tracing.StartWait(ctx, "the app")
	defer func() { span.End(err) }()
	timeout := time.NewTimer(a.manager.o.RestartWait)
	defer timeout.Stop()
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return nil, unavailable(time.Second, "app %s is busy: %d calls are in flight", a.key.Name, a.manager.o.MaxCalls)
	}
	in, err = a.ready(ctx, timeout.C)
	if err != nil {
		a.ReleaseSlot()
	}
	return in, err
}

// AwaitOffer is called when a workspace has no tool of an app that a caller names. It waits, at most
// Options.RestartWait, for an app that is starting and whose lists have not been read yet; afterwards
// Offer has them. Without such an app, or when its lists are known, it returns nil at once.
// core.CodeUnavailable says that the app is installed but offers nothing now: it is stopped, dead or
// away, or is still starting, or it is declared and could not be installed.
func (m *Manager) AwaitOffer(ctx context.Context, workspace, server string) error {
	k := interact.AppKey{Workspace: workspace, Name: server}
	if err := m.syncRecord(ctx, k); err != nil {
		return err
	}
	a, err := m.find(workspace, server)
	if err != nil {
		if failed, ok := m.failedInstalls.find(k); ok {
			return unavailable(0, "app %q could not be installed: %s", server, failed.LastError)
		}
		return nil
	}
	now := a.now.Load()
	if now.state == core.StateRunning || !offer.IsEmpty(&now.offer) {
		return nil
	}
	timeout := time.NewTimer(m.o.RestartWait)
	defer timeout.Stop()
	_, err = a.ready(ctx, timeout.C)
	return err
}

// ready waits until the app runs.
func (a *app) ready(ctx context.Context, timeout <-chan time.Time) (instance.Instance, error) {
	for {
		v := a.now.Load()
		switch v.state {
		case core.StateStopped:
			if !v.startsSoon() {
				return nil, unavailable(0, "app %q is stopped%s; start it first", a.key.Name, v.because())
			}
		case core.StateDead:
			if v.failure != nil && v.failure.Final {
				return nil, unavailable(0, "app %q is dead%s", a.key.Name, v.because())
			}
			return nil, unavailable(0, "app %q is dead after too many failed restarts%s; correct that, then start it", a.key.Name, v.because())
		case core.StateRunning:
			if in := a.current(); in != nil {
				return in, nil
			}
		case core.StateCrashed:
			a.wakeRetry()
		default:
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout:
			return nil, unavailable(time.Second, "app %q is %s and was not running within %v%s", a.key.Name, v.state, a.manager.o.RestartWait, v.because())
		}
	}
}

// CallError implements interact.App.
func (a *app) CallError(ctx, limit context.Context, in interact.Instance, method string, err error) error {
	if rpcErr, ok := errors.AsType[*rpc.Error](err); ok {
		a.noteRefusal(rpcErr)
		return rpcErr
	}
	known, ok := errors.AsType[*core.Error](err)
	late := errors.Is(err, interact.ErrTimeout) || errors.Is(context.Cause(limit), interact.ErrTimeout)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return known
	case errors.Is(err, context.Canceled) && !late:
		return err
	case late:
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.Name+" did not answer "+method+" within "+a.manager.o.CallTimeout.String()+"; the call was cancelled")
	case errors.Is(err, link.ErrClosed) || isClosed(in.Done()):
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.Name+" stopped while the call was running; it was not repeated").WithRetryAfter(time.Second)
	case errors.Is(err, link.ErrTooLarge):
		return core.Wrap(core.CodeUnavailable, err, fmt.Sprintf("app %s: %v: the limit is %d bytes (limits.answerBytes)", a.key.Name, link.ErrTooLarge, a.manager.o.MaxAnswer))
	case errors.Is(err, link.ErrParams):
		return core.Wrap(core.CodeBadRequest, err, link.ErrParams.Error())
	}
	for _, known := range []error{link.ErrBusy, link.ErrMalformed} {
		if errors.Is(err, known) {
			return core.Wrap(core.CodeUnavailable, err, "app "+a.key.Name+": "+known.Error())
		}
	}
	if r, ok := errors.AsType[*remote.Error](err); ok {
		return core.Wrap(core.CodeUnavailable, err, "app "+a.key.Name+" could not be called: "+r.Error())
	}
	a.log.Warn("call to an app failed", "method", method, "error", err)
	return core.Wrap(core.CodeUnavailable, err, "app "+a.key.Name+" could not be called")
}

// codeHeaderMismatch is the error code of a remote app whose HTTP headers are not those that its
// schemas ask for (MCP 2026-07-28).
const codeHeaderMismatch = -32020

// noteRefusal looks at an error of the app: one about headers may mean that its schemas have changed,
// so its tools are read again, and the next call has the headers that they ask for.
func (a *app) noteRefusal(rpcErr *rpc.Error) {
	if rpcErr.Code != codeHeaderMismatch {
		return
	}
	if in := a.current(); in != nil {
		in.AddListChange(core.KindTools)
	}
}

func isClosed(c <-chan struct{}) bool {
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
