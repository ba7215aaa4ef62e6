package apps

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/process"
)

// To clients, a sleeping app looks like a running one: its lists are kept, nothing is announced, and its restart count
// and start time do not change. But it has no process. The supervisor puts it to sleep and wakes it up. This way, the
// app is started once no matter how many calls wait, and never while its old processes are still running.

// quietCPU is how much processor time an app may use in total while it counts as idle.
const quietCPU = 50 * time.Millisecond

// measured is an instance whose activity can be measured: a process on this machine.
type measured interface {
	Activity() (a process.Activity, ok bool)
}

// attend watches a running app, including the times when it sleeps, until its instance is gone or ctx ends. in is nil
// for an app that is asleep. It returns the last instance, or nil if the app was asleep, and why it is gone.
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

// idleLimit returns how long the app may be unused before it is put to sleep, or 0 if it never sleeps, and a channel
// that is closed when the configuration changes.
func (a *app) idleLimit() (limit time.Duration, changed <-chan struct{}) {
	s := a.manager.setup.Load()
	if a.key.Workspace == core.DefaultWorkspaceID {
		if own := s.declared[a.key.Name].Idle; own != nil {
			return *own, s.replaced
		}
	}
	return a.manager.o.Idle, s.replaced
}

// awaitIdle waits until the instance has been unused for the idle limit, or until the app is asked to sleep (app.rest)
// and may. It returns false if ctx ends first, or immediately if the instance cannot be measured.
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
		case reply := <-a.rest:
			may := limit > 0 && u.mayRest()
			if reply <- may; may {
				return true
			}
		case <-tick:
			if u.isInUse() {
				u.since = time.Now()
			} else if time.Since(u.since) >= limit {
				return true
			}
		}
	}
}

// usage checks at intervals whether an instance is in use.
type usage struct {
	app      *app
	instance measured
	since    time.Time // when it was last seen in use

	calls int64         // app.used at that time
	cpu   time.Duration // the processor time from which later use is counted
	own   []int         // its processes after the start; any other is a child that is working
}

func (u *usage) begin() {
	now, _ := u.instance.Activity()
	u.calls, u.cpu, u.own = u.app.used.Load(), now.CPUTime, now.Processes
}

// isInUse reports whether the instance has been used since the last check, or cannot be put to sleep now. Activity that
// cannot be measured counts as use.
func (u *usage) isInUse() bool {
	a := u.app
	if calls := a.used.Load(); calls != u.calls || a.isNeeded() {
		u.calls = calls
		return true
	}
	now, ok := u.instance.Activity()
	if u.own == nil && len(now.Processes) == 1 { // a reload has set the limit, so begin was not called
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

// mayRest reports whether nothing keeps the app awake at the moment, no matter how recently it was used.
func (u *usage) mayRest() bool {
	now, ok := u.instance.Activity()
	return ok && !now.Connected && !u.hasChild(now) && !u.app.isNeeded()
}

// isNeeded reports whether a client needs the app's processes now: for calls (including suspended calls and tasks),
// subscriptions, or instances in the session pool.
func (a *app) isNeeded() bool {
	return a.dialog.Slots().Used() > 0 || len(a.manager.subscriptions.OfApp(a.key)) > 0 || len(a.dialog.Instances()) > 0
}

// fallAsleep shuts the instance down. It returns false if a client needs the app after all. Calls wait from the first
// transition on; an earlier call holds a slot, so isNeeded sees it.
func (a *app) fallAsleep(in instance.Instance) bool {
	select { // drop an earlier wake-up
	case <-a.wake:
	default:
	}
	a.transition(sameState, func(v *view) {
		v.instance, v.asleep, v.instructions, v.servesSkills = nil, true, in.Info().Instructions, servesSkills(in)
	})
	if a.isNeeded() {
		a.transition(sameState, func(v *view) { v.instance, v.asleep = in, false })
		return false
	}
	a.keepLists(in) // the idle limit may have been set by a reload, after the lists were read
	if err := in.Shutdown(a.manager.o.Grace); err != nil {
		a.log.Error("could not stop the processes of an app that was put to sleep", "error", err)
	}
	a.log.Debug("app was put to sleep")
	return true
}

// wakeUp makes the supervisor start a sleeping app now.
func (a *app) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// restartWait returns how long a call waits for the app to run. For a sleeping app, this includes its start timeout.
func (a *app) restartWait(v *view) time.Duration {
	if v.asleep {
		return a.manager.o.RestartWait + a.startTimeout(v.record)
	}
	return a.manager.o.RestartWait
}

// syncAsleep makes a sleeping app match its record before a call wakes it, because another server of the cluster may
// have changed it.
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
