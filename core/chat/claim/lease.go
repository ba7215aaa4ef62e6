package claim

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	// defaultLease is for how long other servers respect a claim of a server that was killed. A run that
	// goes on extends it three times as often.
	defaultLease   = 15 * time.Second
	releaseTimeout = 10 * time.Second
)

// lease is a claim among all servers that share the state.
type lease struct {
	claim  *Claim
	holder string
	length time.Duration
	stop   context.CancelFunc
	over   chan struct{} // closed when it is not extended any more
}

// acquireLease claims the conversation among all servers, and keeps it claimed until release.
func acquireLease(ctx context.Context, c *Claim) (*lease, error) {
	l := &lease{claim: c, holder: core.RandomID("run_"), length: c.claims.lease, over: make(chan struct{})}
	if err := c.claims.store.ClaimRun(ctx, c.ref, l.holder, l.length); err != nil {
		if core.CodeOf(err) == core.CodeRunInProgress {
			return nil, inProgress()
		}
		return nil, err
	}
	extending, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.extend(extending)
	return l, nil
}

// extend extends the lease until ctx ends. A run whose lease is lost ends: the conversation was deleted
// through another server, or the state could not be reached for so long that another server may have it.
func (l *lease) extend(ctx context.Context) {
	defer close(l.over)
	cs := l.claim.claims
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
		err := cs.store.ClaimRun(limit, l.claim.ref, l.holder, l.length)
		cancel()
		code := core.CodeOf(err)
		switch {
		case err == nil:
			until = now.Add(l.length)
		case ctx.Err() != nil:
			return
		case code == core.CodeNotFound || code == core.CodeRunInProgress || time.Now().After(until):
			cs.log.Warn("chat run ended: its claim of the conversation was lost", "conversation", l.claim.ref.ID, "error", err)
			l.claim.cancelRun()
			return
		}
	}
}

// release ends the lease.
func (l *lease) release() {
	l.stop()
	<-l.over
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	cs := l.claim.claims
	if err := cs.store.ReleaseRun(ctx, l.claim.ref, l.holder); err != nil {
		cs.log.Warn("claim of a conversation not released; other servers wait for the end of its lease", "conversation", l.claim.ref.ID, "error", err)
	}
}
