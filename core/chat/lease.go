package chat

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// runLease is how long other servers respect a run of a server that they hear nothing of: a
// conversation whose server was killed is free after that. A run that goes on renews it three times
// as often.
const runLease = 15 * time.Second

// lease is a run's claim of its conversation among all servers that share the state.
type lease struct {
	slot   *slot
	holder string
	length time.Duration
	stop   context.CancelFunc
	over   chan struct{} // closed when it is renewed no more
}

// hold claims the conversation of a slot and keeps it claimed until end.
func (e *Engine) hold(ctx context.Context, s *slot) (*lease, error) {
	l := &lease{slot: s, holder: newID("run_"), length: e.lease, over: make(chan struct{})}
	if err := e.store.ClaimRun(ctx, s.ref, l.holder, l.length); err != nil {
		if core.CodeOf(err) == core.CodeRunInProgress {
			return nil, inProgress()
		}
		return nil, err
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.renew(renewing)
	return l, nil
}

// renew keeps the claim until ctx ends. A run whose claim is lost ends: the conversation was deleted
// through another server, or the state could not be reached for so long that another may have it.
func (l *lease) renew(ctx context.Context) {
	defer close(l.over)
	e := l.slot.e
	tick := time.NewTicker(l.length / 3)
	defer tick.Stop()
	for until := time.Now().Add(l.length); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		limit, cancel := context.WithDeadline(ctx, now.Add(l.length/3))
		err := e.store.ClaimRun(limit, l.slot.ref, l.holder, l.length)
		cancel()
		code := core.CodeOf(err)
		switch {
		case err == nil:
			until = now.Add(l.length)
		case ctx.Err() != nil:
			return
		case code == core.CodeNotFound || code == core.CodeRunInProgress || time.Now().After(until):
			e.log.Warn("A run ends: its conversation is no longer its own", "conversation", l.slot.ref.ID, "error", err)
			l.slot.end()
			return
		}
	}
}

// end gives the claim back.
func (l *lease) end() {
	l.stop()
	<-l.over
	ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
	defer cancel()
	if err := l.slot.e.store.ReleaseRun(ctx, l.slot.ref, l.holder); err != nil {
		l.slot.e.log.Warn("The end of a run could not be told to the other servers: its conversation is free a little later", "conversation", l.slot.ref.ID, "error", err)
	}
}
