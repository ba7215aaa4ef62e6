package apps

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
)

// A supervised app publishes these events:
//
//   - bundle.crashed announces restart attempt N. It is published when a running app dies, and after each
//     failed attempt if another one is left. A healthy app that is killed causes crashed 1 and recovered.
//     An app that always dies causes crashed 1, 2, 3 and then dead. An app whose files were changed is dead at once.
//   - bundle.recovered: an attempt succeeded.
//   - bundle.dead: no attempts are left. It is published instead of another bundle.crashed.
//   - An app that fails when the server starts is treated as crashed.
//
// The state remains crashed from the death until the app is running again or dead. A remote app is never dead: it is
// retried as long as it should be running, with growing delays, and immediately when it is called. So is a local app that
// lacks what other apps use at the moment (Failure.Busy), and an idle one is then put to sleep for it. Only the first
// attempts of an outage are announced, as many as a process gets.

// rereadPause is the minimum time between two readings of an app's lists. The first announcement is acted on
// immediately. If an app announces changes all the time, for example after each reading, the interval doubles from
// the stormAfter-th announcement in a row, up to maxRereadPause.
const (
	rereadPause    = 100 * time.Millisecond
	maxRereadPause = time.Minute
	stormAfter     = 8
)

// callRetryPause is the minimum time between two attempts to reach a remote app that is being called.
const callRetryPause = time.Second

// supervise keeps the app running until ctx ends (then the app is stopped) or its restart attempts are used up (then it
// is dead). in is nil if the app has to be started first, or is asleep. The error says why the app's processes could
// not be stopped.
func (a *app) supervise(ctx context.Context, in instance.Instance) error {
	remote := a.now.Load().record.Remote != nil
	tries := attempts{Policy: *a.manager.o.Policy, Remote: remote}
	var failure *instance.Failure
	asleep := a.now.Load().asleep
	if in == nil && !asleep {
		in, failure = a.tryStart(ctx, true)
	}
	for ; ; asleep = false {
		var up time.Duration
		if in != nil || asleep {
			in, failure = a.attend(ctx, in)
			up = time.Since(a.now.Load().since)
		}
		if ctx.Err() != nil {
			return a.endInstance(in)
		}
		if in != nil {
			a.manager.o.Metrics.AppDeath(a.key.Name)
			a.log.Warn("app exited on its own", "reason", failure.Error(), "up", up.String())
		}
		tries.Remote = remote || failure.Busy // other apps will end, or fall asleep
		attempt, delay, ok := tries.Next(up)
		a.transition(core.StateCrashed, func(v *view) { v.failure = failure })
		if !ok || failure.Final {
			a.markDead(in, failure)
			return nil
		}
		announced := attempt <= len(tries.Policy.Delays)
		if announced {
			a.publish(core.EventBundleCrashed, core.BundleCrashed{Name: a.key.Name, RestartAttempt: attempt, Reason: limitExceeded(in)})
		}
		a.discardInstance(in)
		if !a.awaitAttempt(ctx, delay, tries.Remote) {
			return a.endInstance(nil)
		}
		a.transition(sameState, func(v *view) { v.restarts++ })
		a.manager.o.Metrics.AppRestart(a.key.Name)
		if in, failure = a.tryStart(ctx, announced); in != nil {
			a.publish(core.EventBundleRecovered, core.BundleRecovered{Name: a.key.Name})
		}
	}
}

// awaitAttempt waits before a restart attempt: until delay has passed or, for a remote app, until it is called. It
// returns false if ctx has ended.
func (a *app) awaitAttempt(ctx context.Context, delay time.Duration, remote bool) bool {
	if !remote || delay <= callRetryPause {
		return wait(ctx, delay)
	}
	select { // ignore calls from before the wait
	case <-a.retry:
	default:
	}
	if !wait(ctx, callRetryPause) {
		return false
	}
	timer := time.NewTimer(delay - callRetryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.retry:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// wakeRetry makes the supervisor retry a crashed remote app now.
func (a *app) wakeRetry() {
	select {
	case a.retry <- struct{}{}:
		a.manager.o.Metrics.AppWakeUp(a.key.Name)
	default:
	}
}

// tryStart starts the app when it is its turn in the start queue. If that fails, in is nil and failure says why.
func (a *app) tryStart(ctx context.Context, warn bool) (in instance.Instance, failure *instance.Failure) {
	release, err := a.manager.starts.Acquire(ctx)
	if err != nil {
		return nil, failureOf(err)
	}
	defer release()
	in, lists, err := a.launch(ctx)
	if err != nil {
		if failure = failureOf(err); failure.Busy {
			a.manager.crowd.rest(ctx, 1) // makes room for the next attempt
		}
		switch {
		case ctx.Err() != nil:
		case warn:
			a.log.Warn("app did not start", "reason", failure.Error())
		default:
			a.log.Debug("app did not start", "reason", failure.Error())
		}
		return nil, failure
	}
	a.configure(ctx, in)
	a.markRunning(in, lists)
	return in, nil
}

func (a *app) markRunning(in instance.Instance, lists core.Offer) {
	a.keepLists(in) // store the lists first, so that an app that was seen running can be asleep when the next server starts
	a.used.Store(time.Now().UnixNano())
	a.transition(core.StateRunning, func(v *view) {
		if !v.asleep {
			v.since = time.Now()
		}
		v.instance, v.asleep = in, false
		v.setOffer(lists)
		if v.record.Remote != nil && in.Info().Version != "" {
			v.record.Version = in.Info().Version
		}
	})
	a.manager.crowd.checkSoon()
	a.checkPinsIfDecided()
	if a.unannounced {
		a.unannounced = false
		a.publishInstalled(a.now.Load())
	}
}

// watchInstance waits until the instance is gone or idle, or ctx ends. Meanwhile, it reads the lists again when the
// instance announces changes. failure says why the instance is gone; idle means that it is alive and can be put to
// sleep.
func (a *app) watchInstance(ctx context.Context, in instance.Instance) (failure *instance.Failure, idle bool) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	waited := make(chan bool, 1)
	go func() {
		quiet := a.awaitIdle(watching, in)
		waited <- quiet
		if quiet {
			stop()
		}
	}()
	a.followLists(watching, in, func(changed []core.Kind) { a.rereadLists(watching, in, changed) })
	stop()
	idle = <-waited
	switch {
	case ctx.Err() != nil:
		return nil, false
	case idle && !isClosed(in.Done()):
		return nil, true
	default:
		return in.Failure(), false
	}
}

// followLists calls reread with the lists that an instance announced as changed, until the instance is gone or ctx
// ends.
func (a *app) followLists(ctx context.Context, in instance.Instance, reread func(changed []core.Kind)) {
	changed := in.ListsChanged()
	var due <-chan time.Time // while it is set, announcements wait
	var last time.Time       // when the lists were last read
	pause, row, warned := rereadPause, 0, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-in.Done():
			return
		case <-changed:
			if row++; time.Since(last) > 2*pause+time.Second {
				pause, row = rereadPause, 0
			}
			if row >= stormAfter {
				pause = min(2*pause, maxRereadPause)
				if !warned {
					warned = true
					a.log.Warn("app keeps announcing list changes; reading them at growing intervals", "announcements", row)
				}
			}
			reread(in.TakeListChanges())
			last, changed, due = time.Now(), nil, time.After(pause)
		case <-due:
			changed, due = in.ListsChanged(), nil
		}
	}
}

// configure sends the log level and the subscriptions to a shared instance that has just started. It does so before the
// first call, so that no notification about the effects of a call is missed. It takes at most appTimeout.
func (a *app) configure(ctx context.Context, in instance.Instance) {
	ctx, cancel := context.WithTimeout(ctx, appTimeout)
	defer cancel()
	a.applyLogLevel(ctx, in)
	a.subscribeAgain(ctx, in, a.manager.subscriptions.OfApp(a.key))
}

// endInstance stops the app on request. It rejects new calls before it stops the processes.
func (a *app) endInstance(in instance.Instance) error {
	a.removeSessionLists()
	a.transition(core.StateStopped, nil)
	a.dialog.EndInstances()
	if in == nil {
		return nil
	}
	return in.Shutdown(a.manager.o.Grace)
}

// markDead marks the app as dead when all restart attempts are used up or another attempt would be useless.
func (a *app) markDead(in instance.Instance, failure *instance.Failure) {
	text := failure.Error()
	if !failure.Final {
		text = fmt.Sprintf("all %d restart attempts failed; the last one: %s", len(a.manager.o.Policy.Delays), text)
	}
	a.discardInstance(in)
	a.removeSessionLists()
	a.transition(core.StateDead, func(v *view) { v.failure = failure })
	a.dialog.EndInstances()
	a.log.Error("app is dead until it is started again", "reason", text)
	a.publish(core.EventBundleDead, core.BundleDead{Name: a.key.Name, Message: text})
}

// discardInstance stops what is left of a crashed app's process tree.
func (a *app) discardInstance(in instance.Instance) {
	if in == nil {
		return
	}
	if err := in.Shutdown(0); err != nil {
		a.log.Error("could not stop the processes of a crashed app", "error", err)
	}
}

func (a *app) publish(name string, data any) {
	a.manager.o.Events.Publish(core.Event{Name: name, Workspace: a.key.Workspace, Data: data})
}

// wait waits for d. It returns false if ctx ends first.
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

// limitExceeded returns the limit that an instance exceeded and was killed for, or "" if there is none or in is nil.
func limitExceeded(in instance.Instance) string {
	if limited, ok := in.(interface{ LimitExceeded() string }); ok {
		return limited.LimitExceeded()
	}
	return ""
}
