package chat

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// startTimeout is how long a claim waits for its run to start before it is released.
const startTimeout = 30 * time.Second

// claimStore stores the claims of all servers that share the state.
type claimStore interface {
	Shared() bool // whether other servers may use the same state
	peerStore
	// ClaimRun claims a conversation for holder across all servers, or extends the claim, until ReleaseRun or the end
	// of the lease. The error is core.CodeRunInProgress if another holder has it.
	ClaimRun(ctx context.Context, ref core.ConversationRef, holder string, lease time.Duration) error
	ReleaseRun(ctx context.Context, ref core.ConversationRef, holder string) error
	RunHolder(ctx context.Context, ref core.ConversationRef) (holder string, err error) // core.CodeNotFound if there is no run
}

// claims contains this server's claims. It is safe for concurrent use.
type claims struct {
	store claimStore
	log   hclog.Logger
	lease time.Duration

	mu     sync.Mutex
	active map[string]*claim // by conversation
}

// claim is the exclusive right to run in a conversation.
type claim struct {
	claims  *claims
	ref     core.ConversationRef
	cancel  context.CancelFunc // ends the run; nil until it has started
	ended   bool               // the claim is being released; guarded, like cancel, by claims.mu
	over    chan struct{}      // closed when the conversation is free
	expiry  *time.Timer
	lease   *claimLease // nil if no other server shares the state
	release sync.Once
}

// Acquire claims a conversation and calls admit. It releases the claim if admit returns an error, or if the run is
// not started within 30 s. The error is core.CodeRunInProgress if the conversation is already claimed, and
// core.CodeNotFound if it no longer exists.
func (cs *claims) Acquire(ctx context.Context, ref core.ConversationRef, admit func(*claim) error) (err error) {
	c := &claim{claims: cs, ref: ref, over: make(chan struct{})}
	cs.mu.Lock()
	claimed := cs.active[ref.ID] != nil
	if !claimed {
		cs.active[ref.ID] = c
	}
	cs.mu.Unlock()
	if claimed {
		return errRunInProgress()
	}
	if cs.store.Shared() {
		c.lease, err = acquireLease(ctx, c)
	}
	if err == nil {
		cs.mu.Lock()
		c.expiry = time.AfterFunc(startTimeout, c.expire)
		cs.mu.Unlock()
		err = admit(c)
	}
	if err != nil {
		c.Release()
	}
	return err
}

func errRunInProgress() error {
	return core.Errorf(core.CodeRunInProgress, "a run is in progress in this conversation; wait for it, stop it, or send the message with queue: true")
}

// Start returns the context of the run. It returns false if the claim has already been released.
func (c *claim) Start(ctx context.Context) (context.Context, bool) {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.ended {
		return ctx, false
	}
	c.expiry.Stop()
	ctx, c.cancel = context.WithCancel(ctx)
	return ctx, true
}

// expire releases a claim if its run was not started in time.
func (c *claim) expire() {
	c.claims.mu.Lock()
	started := c.cancel != nil
	c.ended = c.ended || !started
	c.claims.mu.Unlock()
	if !started {
		c.Release()
	}
}

// cancelRun cancels the run if it has started.
func (c *claim) cancelRun() {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// Release ends the run and frees the conversation. Another run may start once it returns. Later calls do nothing.
func (c *claim) Release() {
	c.release.Do(func() {
		c.claims.mu.Lock()
		c.ended = true
		c.claims.mu.Unlock()
		c.cancelRun()
		if c.expiry != nil {
			c.expiry.Stop()
		}
		if c.lease != nil {
			c.lease.release()
		}
		c.claims.mu.Lock()
		delete(c.claims.active, c.ref.ID)
		c.claims.mu.Unlock()
		close(c.over)
	})
}

// isActive reports whether this server has a run in a conversation.
func (cs *claims) isActive(conversation string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.active[conversation] != nil
}

// end returns a channel that is closed when this server's run in a conversation ends, or nil if there is none.
func (cs *claims) end(conversation string) <-chan struct{} {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.active[conversation]; c != nil {
		return c.over
	}
	return nil
}

// Interrupt ends this server's run in a conversation, if there is one, and waits until the conversation is free.
func (cs *claims) Interrupt(ctx context.Context, conversation string) error {
	cs.mu.Lock()
	c := cs.active[conversation]
	cs.mu.Unlock()
	if c == nil {
		return nil
	}
	c.cancelRun()
	select {
	case <-c.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// defaultLease is how long other servers respect a claim after its server was killed. An active run extends its
	// lease whenever a third of that time has passed.
	defaultLease   = 15 * time.Second
	releaseTimeout = 10 * time.Second
)

// claimLease is a claim that is visible to all servers that share the state.
type claimLease struct {
	claim  *claim
	holder string
	length time.Duration
	stop   context.CancelFunc
	over   chan struct{} // closed when the lease is no longer extended
}

// acquireLease claims the conversation across all servers and keeps extending the claim until release is called.
func acquireLease(ctx context.Context, c *claim) (*claimLease, error) {
	l := &claimLease{claim: c, holder: c.claims.store.ServerID() + "." + core.RandomID("run_"), length: c.claims.lease, over: make(chan struct{})}
	if err := c.claims.store.ClaimRun(ctx, c.ref, l.holder, l.length); err != nil {
		if core.CodeOf(err) == core.CodeRunInProgress {
			return nil, errRunInProgress()
		}
		return nil, err
	}
	extending, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.extend(extending)
	return l, nil
}

// extend extends the lease until ctx ends. If the lease is lost, it cancels the run: either the conversation was
// deleted through another server, or the state was unreachable for so long that another server may have claimed it.
func (l *claimLease) extend(ctx context.Context) {
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
			cs.log.Warn("chat run ended because its claim on the conversation was lost", "conversation", l.claim.ref.ID, "error", err)
			l.claim.cancelRun()
			return
		}
	}
}

func (l *claimLease) release() {
	l.stop()
	<-l.over
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	cs := l.claim.claims
	if err := cs.store.ReleaseRun(ctx, l.claim.ref, l.holder); err != nil {
		cs.log.Warn("could not release the claim on a conversation; other servers must wait until its lease expires", "conversation", l.claim.ref.ID, "error", err)
	}
}
