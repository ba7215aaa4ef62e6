package apps

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Call makes a call of an app. It waits for an app that is starting or restarting, at most Options.RestartWait. A call
// that is in flight when the app dies fails at once and is never repeated, because it may have had its effect.
//
// Errors: core.CodeNotFound without such an app; core.CodeUnavailable when the app does not run; else those of
// interact.Dialog.CallError.
func (m *Manager) Call(ctx context.Context, workspace, server string, c interact.Call) (json.RawMessage, error) {
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
	defer a.dialog.ReleaseSlot()
	return a.dialog.Do(ctx, in, c)
}

// acquire returns the shared instance, and holds a slot when it returns no error. The slot comes first: an app with a call
// is not put to sleep. A call that had to wait is checked again, because the app may have started with other tools.
func (a *app) acquire(ctx context.Context, c interact.Call) (instance.Instance, error) {
	if a.dialog.AcquireSlot() {
		a.used.Store(time.Now().UnixNano())
		if in := a.current(); in != nil {
			return in, nil
		}
		a.dialog.ReleaseSlot()
	}
	in, err := a.queue(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.checkHeld(c); err != nil {
		a.dialog.ReleaseSlot()
		return nil, err
	}
	return in, nil
}

// checkHeld returns core.CodeToolHeld for a call of a tool that is held back now.
func (a *app) checkHeld(c interact.Call) error {
	held := a.now.Load().offer.Held
	if c.Method != "tools/call" || len(held) == 0 {
		return nil
	}
	var params struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(c.Params, &params) // the app says what is wrong with them
	for _, h := range held {
		if h.Name == params.Name {
			return core.Errorf(core.CodeToolHeld, "%s", h.Reason)
		}
	}
	return nil
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
	if err := a.syncAsleep(ctx); err != nil {
		return nil, err
	}
	timeout := time.NewTimer(a.restartWait(a.now.Load()))
	defer timeout.Stop()
	select {
	case a.dialog.Slots() <- struct{}{}:
		a.used.Store(time.Now().UnixNano())
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return nil, unavailable(time.Second, "app %s is busy: %d calls are in flight", a.key.Name, a.manager.o.MaxCalls)
	}
	in, err = a.ready(ctx, timeout.C)
	if err != nil {
		a.dialog.ReleaseSlot()
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
			if v.asleep {
				a.wakeUp()
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
