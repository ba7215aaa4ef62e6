package apps

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
)

// The events of a supervised app:
//
//   - bundle.crashed announces restart attempt N. It follows the death of a running app, and each
//     failed attempt while another is left: a healthy app that is killed gives crashed 1 and
//     recovered; one that always dies gives crashed 1, 2, 3 and then dead.
//   - bundle.recovered: an attempt succeeded.
//   - bundle.dead: no attempt is left; it takes the place of the next crashed.
//   - An app that fails when the server starts is treated as crashed.
//
// The state stays crashed from the death until the app runs again or is dead.

// rereadPause is the least time between two readings of an app's lists, so that an app that announces
// changes all the time costs little. The first announcement is followed at once.
const rereadPause = 100 * time.Millisecond

// supervise keeps the app running until ctx ends (the app is stopped then) or its restart attempts are
// used up (it is dead then). in is nil when the app has to be started first. The error says why the
// app's processes could not be ended.
func (a *app) supervise(ctx context.Context, in instance.Instance) error {
	tries := attempts{policy: *a.manager.o.Policy}
	var reason string
	if in == nil {
		in, reason = a.tryStart(ctx)
	}
	for {
		var up time.Duration
		if in != nil {
			reason = a.watchInstance(ctx, in)
			up = time.Since(a.now.Load().since)
		}
		if ctx.Err() != nil {
			return a.endInstance(in)
		}
		if in != nil {
			a.log.Warn("app stopped by itself", "reason", reason, "up", up)
		}
		attempt, delay, ok := tries.next(up)
		a.transition(core.StateCrashed, nil)
		if !ok {
			a.markDead(in, reason)
			return nil
		}
		a.publish(core.EventBundleCrashed, core.BundleCrashed{Name: a.key.Name, RestartAttempt: attempt})
		a.discardInstance(in)
		if !wait(ctx, delay) {
			return a.endInstance(nil)
		}
		a.transition(sameState, func(v *view) { v.restarts++ })
		if in, reason = a.tryStart(ctx); in != nil {
			a.publish(core.EventBundleRecovered, core.BundleRecovered{Name: a.key.Name})
		}
	}
}

// tryStart starts the app, in its turn of the start queue. The app runs then, or in is nil and reason
// says why.
func (a *app) tryStart(ctx context.Context) (in instance.Instance, reason string) {
	release, err := a.manager.starts.acquire(ctx)
	if err != nil {
		return nil, err.Error()
	}
	defer release()
	in, lists, err := a.launch(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("app did not start", "reason", core.TextOf(err))
		}
		return nil, core.TextOf(err)
	}
	a.markRunning(in, lists)
	return in, ""
}

func (a *app) markRunning(in instance.Instance, lists core.Offer) {
	a.transition(core.StateRunning, func(v *view) {
		v.instance, v.since = in, time.Now()
		v.setOffer(lists)
		if v.record.Remote != nil && in.Info().Version != "" {
			v.record.Version = in.Info().Version
		}
	})
	if a.unannounced {
		a.unannounced = false
		a.publishInstalled(a.now.Load())
	}
}

// watchInstance waits until the instance is gone or ctx ends, and reads its lists again when it
// announces changes. It returns why the instance is gone.
func (a *app) watchInstance(ctx context.Context, in instance.Instance) (reason string) {
	configuring, cancel := context.WithCancel(ctx)
	var configured sync.WaitGroup
	configured.Go(func() { a.configure(configuring, in) })
	defer configured.Wait()
	defer cancel()
	changed := in.ListsChanged()
	var pause <-chan time.Time // while it is set, announcements wait
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-in.Done():
			return in.Reason()
		case <-changed:
			a.rereadLists(ctx, in, in.TakeListChanges())
			changed, pause = nil, time.After(rereadPause)
		case <-pause:
			changed, pause = in.ListsChanged(), nil
		}
	}
}

// configure sends the log level and the subscriptions to a shared instance that has just started.
func (a *app) configure(ctx context.Context, in instance.Instance) {
	a.manager.logLevels.apply(ctx, a, in)
	a.subscribeAgain(ctx, in, a.manager.subscriptions.ofApp(a.key))
}

// endInstance ends the app on request. New calls are refused first, then the processes end.
func (a *app) endInstance(in instance.Instance) error {
	a.transition(core.StateStopped, nil)
	a.dialog.EndInstances()
	if in == nil {
		return nil
	}
	return in.Shutdown(a.manager.o.Grace)
}

// markDead is called when all restart attempts are used up.
func (a *app) markDead(in instance.Instance, reason string) {
	text := fmt.Sprintf("all %d restart attempts failed; the last one: %s", len(a.manager.o.Policy.Delays), reason)
	a.discardInstance(in)
	a.transition(core.StateDead, nil)
	a.dialog.EndInstances()
	a.log.Error("app is dead until it is started again", "reason", text)
	a.publish(core.EventBundleDead, core.BundleDead{Name: a.key.Name, Message: text})
}

// discardInstance ends what is left of a crashed app's process tree.
func (a *app) discardInstance(in instance.Instance) {
	if in == nil {
		return
	}
	if err := in.Shutdown(0); err != nil {
		a.log.Error("processes of a crashed app could not be ended", "error", err)
	}
}

func (a *app) publish(name string, data any) {
	a.manager.o.Events.Publish(core.Event{Name: name, Workspace: a.key.Workspace, Data: data})
}

// wait reports whether d has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
