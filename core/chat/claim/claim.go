package claim

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// startTimeout is how long a claim waits for its run to start before it is released.
const startTimeout = 30 * time.Second

// Store keeps the claims of all servers that share the state.
type Store interface {
	Shared() bool // whether other servers may use the same state
	// ClaimRun claims a conversation for holder among all servers, or extends the claim, until ReleaseRun
	// or the end of the lease: core.CodeRunInProgress when another has it.
	ClaimRun(ctx context.Context, ref core.ConversationRef, holder string, lease time.Duration) error
	ReleaseRun(ctx context.Context, ref core.ConversationRef, holder string) error
}

// Claims are those of this server. It is safe for concurrent use.
type Claims struct {
	store Store
	log   hclog.Logger
	lease time.Duration

	mu     sync.Mutex
	active map[string]*Claim // by conversation
}

// New returns Claims. lease is for how long other servers respect a claim of a server that was killed;
// 0 means 15 s.
func New(store Store, lease time.Duration, log hclog.Logger) *Claims {
	return &Claims{store: store, log: log, lease: cmp.Or(lease, defaultLease), active: map[string]*Claim{}}
}

// Claim is the right to the one run of a conversation.
type Claim struct {
	claims  *Claims
	ref     core.ConversationRef
	cancel  context.CancelFunc // ends the run; nil until it started
	ended   bool               // it is being released; guarded, as cancel is, by the mutex of claims
	over    chan struct{}      // closed when the conversation is free
	expiry  *time.Timer
	lease   *lease // nil when no other server shares the state
	release sync.Once
}

// Acquire claims a conversation; core.CodeRunInProgress when it is claimed, core.CodeNotFound when it is
// gone. A claim that is not started within 30 s is released.
func (cs *Claims) Acquire(ctx context.Context, ref core.ConversationRef) (*Claim, error) {
	c := &Claim{claims: cs, ref: ref, over: make(chan struct{})}
	cs.mu.Lock()
	claimed := cs.active[ref.ID] != nil
	if !claimed {
		cs.active[ref.ID] = c
	}
	cs.mu.Unlock()
	if claimed {
		return nil, inProgress()
	}
	if cs.store.Shared() {
		l, err := acquireLease(ctx, c)
		if err != nil {
			c.Release()
			return nil, err
		}
		c.lease = l
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.expiry = time.AfterFunc(startTimeout, c.expire)
	return c, nil
}

func inProgress() error {
	return core.Errorf(core.CodeRunInProgress, "a run is in progress in this conversation; wait for it, or end it by closing its stream")
}

// Start returns the context of the run; false when the claim was released already.
func (c *Claim) Start(ctx context.Context) (context.Context, bool) {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.ended {
		return ctx, false
	}
	c.expiry.Stop()
	ctx, c.cancel = context.WithCancel(ctx)
	return ctx, true
}

// expire releases a claim whose run was not started.
func (c *Claim) expire() {
	c.claims.mu.Lock()
	started := c.cancel != nil
	c.ended = c.ended || !started
	c.claims.mu.Unlock()
	if !started {
		c.Release()
	}
}

// cancelRun ends the run, if it has started.
func (c *Claim) cancelRun() {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// Release ends the run and frees the conversation; another run may begin when it returns. It may be
// called again.
func (c *Claim) Release() {
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

// Interrupt ends the run of a conversation in this server, if there is one, and waits until the
// conversation is free.
func (cs *Claims) Interrupt(ctx context.Context, conversation string) error {
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
