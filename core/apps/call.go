package apps

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Call makes a call to an app. If the app is starting or restarting, Call waits for it, but no longer than
// Options.RestartWait. If the app dies during a call, the call fails immediately. It is never repeated, because it
// may already have taken effect. To make it again, pass c.Again.
//
// Errors: core.CodeNotFound if there is no such app; core.CodeUnavailable if the app is not running; core.CodeToolHeld
// if the tool is held back after the app has started; otherwise the errors of interact.Dialog.CallError.
func (m *Manager) Call(ctx context.Context, workspace, server string, c *interact.Call) (json.RawMessage, error) {
	a, err := m.find(workspace, server)
	if err != nil {
		return nil, err
	}
	if result, resumed, err := a.dialog.Resume(ctx, c); resumed {
		return result, err
	}
	in, err := a.acquire(ctx, c)
	if err != nil {
		return nil, err
	}
	return a.dialog.Do(ctx, in, c)
}

// acquire takes a slot, which Dialog.Do releases, and returns the shared instance. It takes the slot first, because an
// app with a call in flight is not put to sleep. It then checks the call again, because the app's tools may have
// changed since the tool was looked up. A call that uses an account is checked again only if it has waited. A call that
// has waited is also checked by its sender (c.Recheck).
func (a *app) acquire(ctx context.Context, c *interact.Call) (in instance.Instance, err error) {
	waited := false
	if a.dialog.Slots().Take(c.Sender) == nil {
		a.used.Store(time.Now().UnixNano())
		if in = a.current(); in == nil {
			a.dialog.Slots().Release(c.Sender)
		}
	}
	if in == nil {
		waited = true
		if in, err = a.queue(ctx, c.Sender); err != nil {
			return nil, err
		}
	}
	if waited && c.Recheck != nil {
		err = c.Recheck(ctx)
	}
	if err == nil && (waited || c.Account == "") {
		err = a.checkHeld(c)
	}
	if err != nil {
		a.dialog.Slots().Release(c.Sender)
		return nil, err
	}
	return in, nil
}

// checkHeld returns core.CodeToolHeld for a call to a tool that is being held back.
func (a *app) checkHeld(c *interact.Call) error {
	held := a.now.Load().offer.Held
	if c.Method != "tools/call" || len(held) == 0 {
		return nil
	}
	var params struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(c.Params, &params) // the app reports invalid params
	for _, h := range held {
		if h.Name == params.Name {
			return core.Errorf(core.CodeToolHeld, "%s", h.Reason)
		}
	}
	return nil
}

// current returns the shared instance if it can be called now, and nil otherwise.
func (a *app) current() instance.Instance {
	in := a.now.Load().instance
	if in == nil || isClosed(in.Done()) { // it died, but the supervisor has not noticed yet
		return nil
	}
	return in
}

// queue waits for the app to run and for a slot that the user may take. It takes the slot unless it returns an error.
func (a *app) queue(ctx context.Context, user string) (in instance.Instance, err error) {
	ctx, span := tracing.StartWait(ctx, "the app")
	defer func() { span.End(err) }()
	if err := a.syncAsleep(ctx); err != nil {
		return nil, err
	}
	wait := a.restartWait(a.now.Load())
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	if err := a.awaitSlot(ctx, wait, user); err != nil {
		return nil, err
	}
	a.used.Store(time.Now().UnixNano())
	in, err = a.ready(ctx, timeout.C)
	if err != nil {
		a.dialog.Slots().Release(user)
	}
	return in, err
}

// awaitSlot takes a slot for a user, waiting for one if necessary.
func (a *app) awaitSlot(ctx context.Context, wait time.Duration, user string) error {
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	slots := a.dialog.Slots()
	err := slots.Await(limit, user)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, limits.ErrShare):
		return core.Errorf(core.CodeRateLimited, "too many of your calls to app %s are in flight: the limit is %d per user", a.key.Name, slots.Share()).WithRetryAfter(time.Second)
	default:
		return unavailable(time.Second, "app %s is busy: %d calls are in flight", a.key.Name, a.manager.o.MaxCalls)
	}
}

// AwaitOffer is called when a caller names a tool that the workspace does not have. If the app is starting and its
// lists have not been read yet, AwaitOffer waits for it, but no longer than Options.RestartWait. After that, Offer
// contains its lists. If there is no such app, or its lists are known, it returns nil immediately.
// core.CodeUnavailable means that the app currently offers nothing: it is stopped, dead, unreachable or still
// starting, or it is declared but could not be installed.
func (m *Manager) AwaitOffer(ctx context.Context, workspace, server string) error {
	k := interact.AppRef{Workspace: workspace, Name: server}
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

// ready waits until the app is running. It wakes a sleeping app, and makes the supervisor try a crashed remote app
// immediately.
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
			return nil, unavailable(0, "app %q is dead after too many failed restarts%s; fix the cause, then start it", a.key.Name, v.because())
		case core.StateRunning:
			if in := a.current(); in != nil {
				return in, nil
			}
			if v.asleep {
				a.wakeUp()
			}
		case core.StateCrashed:
			a.wakeRetry()
			if timeout == nil && v.failure != nil && v.failure.Busy { // there may be no room for long
				return nil, v.failure
			}
		default:
		}
		select {
		case <-v.replaced:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout:
			if v.asleep {
				return nil, unavailable(time.Second, "app %q was asleep and did not wake within %v", a.key.Name, a.restartWait(v))
			}
			return nil, unavailable(time.Second, "app %q is %s and was not running within %v%s", a.key.Name, v.state, a.manager.o.RestartWait, v.because())
		}
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
