package apps

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/process"
)

// A sleeping app is running for everyone who looks: its lists stay, nothing is announced, and its restarts and the time
// since which it runs do not change. It has no process. The supervisor puts it to sleep and wakes it, so that there is one
// start however many calls wait, and none while the old processes still end.

// quietCPU is the processor time that an idle app may use.
const quietCPU = 50 * time.Millisecond

// measured is an instance whose activity can be seen: a process of this machine.
type measured interface {
	Activity() (a process.Activity, ok bool)
}

// attend watches a running app, through all its sleeps, until its instance is gone or ctx ends. in is nil for an app that
// sleeps. It returns the last instance, nil when the app was asleep, and why it is gone.
func (a *app) attend(ctx context.Context, in instance.Instance) (instance.Instance, *instance.Failure) {
	for {
		if in != nil {
			failure, idle := a.watchInstance(ctx, in)
			if !idle {
				return in, failure
			}
			if !a.fallAsleep(in) {
				continue
			}
		}
		var failure *instance.Failure
		select {
		case <-a.wake:
		case <-ctx.Done():
			return nil, nil
		}
		if in, failure = a.tryStart(ctx, true); in == nil {
			return nil, failure
		}
		a.log.Debug("app woke up")
	}
}

// idleLimit returns how long the app may be unused before it is put to sleep, 0 for ever, and a channel that is closed when
// the configuration changed.
func (a *app) idleLimit() (limit time.Duration, changed <-chan struct{}) {
	s := a.manager.setup.Load()
	if a.key.Workspace == core.DefaultWorkspaceID {
		if own := s.declared[a.key.Name].Idle; own != nil {
			return *own, s.replaced
		}
	}
	return a.manager.o.Idle, s.replaced
}

// awaitIdle reports whether the instance was unused for as long as it may be, or may sleep when it is asked to, before ctx
// ended.
func (a *app) awaitIdle(ctx context.Context, in instance.Instance) bool {
	m, ok := in.(measured)
	if !ok {
		return false
	}
	limit, changed := a.idleLimit()
	u := &usage{app: a, instance: m, since: time.Now()}
	if limit > 0 {
		u.begin()
	}
	for {
		var tick <-chan time.Time
		if limit > 0 {
			tick = time.After(limit / 4)
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
			limit, changed = a.idleLimit()
			u.since = time.Now()
		case answer := <-a.rest:
			may := limit > 0 && u.mayRest()
			if answer <- may; may {
				return true
			}
		case <-tick:
			if u.continues() {
				u.since = time.Now()
			} else if time.Since(u.since) >= limit {
				return true
			}
		}
	}
}

// usage looks at intervals whether an instance is used.
type usage struct {
	app      *app
	instance measured
	since    time.Time // when it was last seen in use

	calls int64         // app.used then
	cpu   time.Duration // its processor time then
	own   []int         // the processes that it had when it had started: any other is a child at work
}

func (u *usage) begin() {
	now, _ := u.instance.Activity()
	u.calls, u.cpu, u.own = u.app.used.Load(), now.CPUTime, now.Processes
}

// continues reports whether the instance was used since the last look, or cannot be put to sleep now. Activity that cannot be
// measured counts as use.
func (u *usage) continues() bool {
	a := u.app
	if calls := a.used.Load(); calls != u.calls || a.isNeeded() {
		u.calls = calls
		return true
	}
	now, ok := u.instance.Activity()
	if u.own == nil && len(now.Processes) == 1 { // the limit came with a reload
		u.own = now.Processes
	}
	if !ok || now.Connected || now.CPUTime-u.cpu >= quietCPU || now.CPUTime < u.cpu {
		u.cpu = now.CPUTime
		return true
	}
	return u.hasChild(now)
}

// hasChild reports whether the instance has a process that it did not start with.
func (u *usage) hasChild(now process.Activity) bool {
	return slices.ContainsFunc(now.Processes, func(pid int) bool { return !slices.Contains(u.own, pid) })
}

// mayRest reports whether nothing holds the app at this moment, however recently it was used.
func (u *usage) mayRest() bool {
	now, ok := u.instance.Activity()
	return ok && !now.Connected && !u.hasChild(now) && !u.app.isNeeded()
}

// isNeeded reports whether a client needs the app's processes now: for calls, suspended ones and tasks included, for
// subscriptions, or for instances of the session pool.
func (a *app) isNeeded() bool {
	return len(a.dialog.Slots()) > 0 || len(a.manager.subscriptions.OfApp(a.key)) > 0 || len(a.dialog.Instances()) > 0
}

// fallAsleep ends the instance. It returns false if a client needs the app after all. Calls wait from the first transition
// on; a call from before it holds a slot, which isNeeded sees.
func (a *app) fallAsleep(in instance.Instance) bool {
	select { // drop a wake-up from before
	case <-a.wake:
	default:
	}
	a.transition(sameState, func(v *view) {
		v.instance, v.asleep, v.stated = nil, true, in.Info().Instructions
	})
	if a.isNeeded() {
		a.transition(sameState, func(v *view) { v.instance, v.asleep = in, false })
		return false
	}
	a.keepLists(in) // the limit may have come with a reload
	if err := in.Shutdown(a.manager.o.Grace); err != nil {
		a.log.Error("processes of an app that was put to sleep could not be ended", "error", err)
	}
	a.log.Debug("app was put to sleep")
	return true
}

// wakeUp makes the supervisor of a sleeping app start it now.
func (a *app) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// restartWait is how long a call waits for the app to run: a sleeping one has the time of its start in addition.
func (a *app) restartWait(v *view) time.Duration {
	if v.asleep {
		return a.manager.o.RestartWait + a.startTimeout(v.record)
	}
	return a.manager.o.RestartWait
}

// syncAsleep makes a sleeping app equal to its record before it is woken for a call: another server of the cluster may have
// changed it.
func (a *app) syncAsleep(ctx context.Context) error {
	if a.manager.o.Cluster == nil || !a.now.Load().asleep {
		return nil
	}
	select {
	case <-a.manager.reconcile(a.key, false):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
