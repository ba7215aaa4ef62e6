package pluginhost

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ropewalk/ropewalk/plugins"
)

// A plugin is considered hung if it leaves this many consecutive pings unanswered. busyHungAfter applies while the
// plugin waits for a processor or the disk, or while the server itself is delayed: on an overloaded machine, the plugin
// is just slow.
const (
	hungAfter     = 2
	busyHungAfter = 8
)

// The server is considered delayed if one of its goroutines waits for a processor longer than lateAfter. Each ping has
// to wait for a processor several times.
const (
	lateAfter = 100 * time.Millisecond
	lateEvery = 20 * time.Millisecond // how often the delay is measured during a ping
)

// supervise keeps a generation running until the slot is closed.
func (s *slot[T]) supervise() {
	defer close(s.ended)
	for {
		g, halt := s.present()
		pause := time.Duration(0)
		if reason := s.watch(g, halt); reason != nil {
			s.lose(g, reason)
			pause = s.pause(g)
		} else {
			s.retire(g)
			if !s.awaitResume() {
				return
			}
		}
		for !s.restart(pause) {
			if !s.awaitResume() {
				return
			}
			pause = 0
		}
	}
}

func (s *slot[T]) present() (*generation[T], <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gen, s.halt
}

// watch waits until g dies or hangs, and returns the reason. It returns nil if the supervision is interrupted.
func (s *slot[T]) watch(g *generation[T], halt <-chan struct{}) error {
	if g.inst == nil {
		<-halt
		return nil
	}
	ping := time.NewTicker(s.host.opts.PingEvery)
	defer ping.Stop()
	var seen health
	for {
		select {
		case <-halt:
			return nil
		case <-g.gone():
			return g.inst.deathReason()
		case <-ping.C:
			began := time.Now()
			delay, err := s.ping(g)
			busy := func() bool { return delay >= lateAfter || g.inst.run.process().Busy() }
			if seen.isHung(err, s.answeredSince(g, began), busy) && !isClosed(g.gone()) {
				if g.inst.run.overLimit() != "" { // watchLimits is already stopping it
					<-g.gone()
					return g.inst.deathReason()
				}
				s.log.Warn("plugin is hung; killing it", "pid", g.inst.run.ID(), "error", err)
				_ = g.inst.run.Kill(context.Background())
				return errors.New("it did not respond to health checks")
			}
		}
	}
}

// ping checks the health of g, and returns the longest delay of the server's own goroutines in the meantime.
func (s *slot[T]) ping(g *generation[T]) (delay time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.host.opts.PingEvery)
	tick := time.NewTicker(lateEvery)
	defer tick.Stop()
	measured := make(chan time.Duration, 1)
	go func() { measured <- longestDelay(ctx, tick.C) }()
	err = g.inst.ping(ctx)
	cancel()
	return <-measured, err
}

// longestDelay receives ticks until ctx ends and returns how late the latest one was.
func longestDelay(ctx context.Context, ticks <-chan time.Time) (longest time.Duration) {
	for {
		select {
		case due := <-ticks:
			longest = max(longest, time.Since(due))
		case <-ctx.Done():
			return longest
		}
	}
}

// health counts consecutive missed health checks.
type health struct{ missed int }

// isHung records the result of a check and reports whether the plugin is considered hung. A plugin that answered a
// call during the check is slow, not hung: replacing it would burden an overloaded machine even more. A plugin gets
// more time if it is busy, because the machine may be overloaded, or if the server may have been too busy to read its
// response. None of this applies to a plugin that reports that it is not serving.
func (h *health) isHung(err error, answered bool, busy func() bool) bool {
	if err == nil || answered && !errors.Is(err, errNotServing) {
		h.missed = 0
		return false
	}
	h.missed++
	return h.missed >= busyHungAfter || h.missed >= hungAfter && (errors.Is(err, errNotServing) || !busy())
}

func (s *slot[T]) answeredSince(g *generation[T], t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.answered.After(t)
}

const (
	// settledAfter is the age at which a generation is considered working, even without calls.
	settledAfter = 2 * time.Second
	// The pauses before a plugin that exits immediately is started again. Each pause is twice as long as the previous
	// one.
	firstPause, longestPause = 50 * time.Millisecond, 400 * time.Millisecond
)

// pause returns how long to wait before replacing g: not at all if g answered a call or ran for a while. The pause
// limits how often a plugin that exits immediately is started.
func (s *slot[T]) pause(g *generation[T]) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !g.answered.IsZero() || time.Since(g.since) >= settledAfter {
		s.nextPause = firstPause
		return 0
	}
	pause := max(s.nextPause, firstPause)
	s.nextPause = min(2*pause, longestPause)
	return pause
}

// lose records that g's process has exited.
func (s *slot[T]) lose(g *generation[T], reason error) {
	s.mu.Lock()
	s.gen, s.lastErr = nil, reason
	s.restarts++
	s.notify()
	s.mu.Unlock()
	g.inst.kill() // go-plugin's remaining resources
	s.log.Warn("plugin exited; replacing it", "reason", reason)
}

// restart starts the next generation after a pause, retrying until it succeeds. It returns false if the
// supervision was interrupted.
func (s *slot[T]) restart(pause time.Duration) bool {
	ctx, cancel := s.untilInterrupted()
	defer cancel()
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return false
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = 50*time.Millisecond, 2*time.Second
	next, err := backoff.Retry(ctx, func() (*generation[T], error) {
		next, err := s.generate(ctx, func(context.Context, plugins.Info) {})
		if err != nil && ctx.Err() == nil {
			s.log.Error("could not restart a plugin; retrying", "error", err)
			s.mu.Lock()
			s.lastErr = err
			s.mu.Unlock()
		}
		return next, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return false
	}
	s.mu.Lock()
	s.gen = next
	s.notify()
	s.mu.Unlock()
	s.log.Info("plugin restarted", "version", next.inst.info.Version, "pid", next.inst.run.ID())
	return true
}

// interrupt interrupts the supervision. It is safe to call more than once.
func (s *slot[T]) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isClosed(s.halt) {
		close(s.halt)
	}
}

// untilInterrupted returns a context that ends when the supervision is interrupted.
func (s *slot[T]) untilInterrupted() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	_, halt := s.present()
	go func() {
		defer cancel()
		select {
		case <-halt:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// retire stops the last generation of a slot that is closed or suspended.
func (s *slot[T]) retire(g *generation[T]) {
	s.mu.Lock()
	s.gen = nil
	s.notify()
	s.mu.Unlock()
	if g.inst == nil {
		return
	}
	if g.inst.kill(); !g.inst.exitedOnRequest() {
		s.log.Warn("plugin was killed: it did not exit within two seconds of Shutdown; it must serve plugin.GRPCController", "plugin", s.target.title())
	}
}
