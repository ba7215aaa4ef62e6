package apps

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// How the events of spec part 6 follow a supervised app:
//
//   - bundle.crashed says that attempt N will be made. It follows the death of a running app, and
//     each attempt that failed while another is left: a healthy app that is killed gives crashed 1
//     and recovered; one that always dies gives crashed 1, 2, 3 and then dead.
//   - bundle.recovered says that an attempt succeeded: the app serves again.
//   - bundle.dead says that no attempt is left; it takes the place of the next crashed.
//   - An app that is brought up when the server starts, and fails, is treated as crashed.
//
// The state stays crashed from the death until the app runs again or is dead.

// supervise keeps the app running until ctx ends (then the app is stopped), or until its attempts
// are used up (then it is dead). conn is nil when the app has yet to be started. The error says
// why the app's processes could not be ended.
func (a *app) supervise(ctx context.Context, conn instance) error {
	tries := attempts{policy: *a.manager.o.Policy}
	var reason string
	if conn == nil {
		conn, reason = a.raise(ctx)
	}
	for {
		var up time.Duration
		if conn != nil {
			reason = a.attend(ctx, conn)
			up = time.Since(a.now.Load().since)
		}
		if ctx.Err() != nil {
			return a.finish(conn)
		}
		if conn != nil {
			a.log.Warn("An app stopped by itself", "reason", reason, "up", up)
		}
		attempt, delay, ok := tries.next(up)
		a.become(core.StateCrashed, nil)
		if !ok {
			a.die(conn, reason)
			return nil
		}
		a.publish(core.EventBundleCrashed, core.BundleCrashed{Name: a.key.name, RestartAttempt: attempt})
		a.discard(conn)
		if !wait(ctx, delay) {
			return a.finish(nil)
		}
		a.become(same, func(v *view) { v.restarts++ })
		if conn, reason = a.raise(ctx); conn != nil {
			a.publish(core.EventBundleRecovered, core.BundleRecovered{Name: a.key.name})
		}
	}
}

// raise launches the app. It runs then; or conn is nil, and reason says why. Only so many apps are
// raised at a time, so that all of them together leave the server its processor time; one that is
// slow keeps its place only for a while.
func (a *app) raise(ctx context.Context) (conn instance, reason string) {
	release, err := a.manager.starts.acquire(ctx)
	if err != nil {
		return nil, err.Error()
	}
	defer release()
	conn, offer, err := a.launch(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("An app did not start", "reason", message(err))
		}
		return nil, message(err)
	}
	a.serving(conn, offer)
	return conn, ""
}

// serving makes the app running.
func (a *app) serving(conn instance, offer core.Offer) {
	a.become(core.StateRunning, func(v *view) {
		v.conn, v.since = conn, time.Now()
		v.setOffer(offer)
		if v.record.Remote != nil && conn.Info().Version != "" {
			v.record.Version = conn.Info().Version
		}
	})
	if a.unannounced {
		a.unannounced = false
		a.installed(a.now.Load())
	}
}

// attend waits until the app is gone or ctx ends, reading its lists again when it says that they
// changed. It returns why the app is gone.
func (a *app) attend(ctx context.Context, conn instance) (reason string) {
	reminding, cancel := context.WithCancel(ctx)
	var reminded sync.WaitGroup
	reminded.Go(func() { a.remind(reminding, conn) })
	defer reminded.Wait()
	defer cancel()
	changed := conn.Changed()
	var pause <-chan time.Time // while it is set, announcements wait
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-conn.Done():
			return conn.Reason()
		case <-changed:
			a.reread(ctx, conn, conn.Take())
			changed, pause = nil, time.After(rereadPause)
		case <-pause:
			changed, pause = conn.Changed(), nil
		}
	}
}

// finish ends the app on request. New calls are refused first, then the processes end.
func (a *app) finish(conn instance) error {
	a.become(core.StateStopped, nil)
	a.manager.annexes.endAll(a.owns)
	if conn == nil {
		return nil
	}
	return conn.End(a.manager.o.Grace)
}

// die is the end of an app whose attempts are used up.
func (a *app) die(conn instance, reason string) {
	text := fmt.Sprintf("%d restart attempts were used up; at last %s", len(a.manager.o.Policy.Delays), reason)
	a.discard(conn)
	a.become(core.StateDead, nil)
	a.manager.annexes.endAll(a.owns)
	a.log.Error("An app is dead until it is started by hand", "reason", text)
	a.publish(core.EventBundleDead, core.BundleDead{Name: a.key.name, Message: text})
}

func (a *app) owns(k annexKey) bool { return k.app == a }

// discard ends what is left of a crashed app's process tree.
func (a *app) discard(conn instance) {
	if conn == nil {
		return
	}
	if err := conn.End(0); err != nil {
		a.log.Error("What is left of a crashed app could not be ended", "error", err)
	}
}

func (a *app) publish(name string, data any) {
	a.manager.o.Events.Publish(core.Event{Name: name, Workspace: a.key.workspace, Data: data})
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
