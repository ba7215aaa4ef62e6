package access

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxVerified  = 10_000           // tokens cached as valid
	maxRefused   = 10_000           // tokens cached as invalid; a separate cache, so that they cannot evict valid ones
	verifiedLife = 60 * time.Second // at most; a token's expiry may end it sooner
	refusedLife  = 5 * time.Second
	askTimeout   = 15 * time.Second // for one call to the adapter
)

// gate is one generation of the settings, together with everything that was cached under them. Replacing the gate
// drops the whole cache.
type gate struct {
	dev       bool
	key       key
	providers []*trusted
	binds     bool // a provider checks tokens against their requests
	verified  *lru.Cache[fingerprint, verified]
	refused   *lru.Cache[fingerprint, time.Time]
	pending   singleflight.Group // pending verifications, by token

	mu      sync.Mutex // keeps a verification that started before a change of a user from being cached after it
	changes uint64     // number of changes of users
}

// verified is a token that the adapter accepted.
type verified struct {
	identity core.Identity
	until    time.Time
}

func newGate(k key, providers []Provider, audiences []string, enroller Enroller) *gate {
	g := &gate{key: k}
	for _, p := range providers {
		t := newTrusted(p, audiences, enroller)
		g.providers, g.binds = append(g.providers, t), g.binds || t.binds
	}
	g.verified, _ = lru.New[fingerprint, verified](maxVerified) // the only error is a size below 1
	g.refused, _ = lru.New[fingerprint, time.Time](maxRefused)
	return g
}

// change returns the number of changes of users so far.
func (g *gate) change() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes
}

// remember caches a verified token, unless a user has changed since then.
func (g *gate) remember(hash fingerprint, good verified, since uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changes == since {
		g.verified.Add(hash, good)
	}
}

// forget drops the cached tokens of a user, "" for all users: the cached identities include the organization role.
func (g *gate) forget(userID string) {
	g.forgetIf(func(id core.Identity) bool { return userID == "" || id.User.ID == userID })
}

// forgetIf drops the cached tokens of the identities that match.
func (g *gate) forgetIf(match func(core.Identity) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes++
	for _, hash := range g.verified.Keys() {
		if good, ok := g.verified.Peek(hash); ok && match(good.identity) {
			g.verified.Remove(hash)
		}
	}
}
