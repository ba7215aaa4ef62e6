package access

import (
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
	binds     bool                               // a provider checks tokens against their requests
	verified  *known[fingerprint, core.Identity] // identities of the accepted tokens
	refused   *lru.Cache[fingerprint, time.Time]
	pending   singleflight.Group // pending verifications, by token
}

func newGate(k key, providers []Provider, audiences []string, enroller Enroller) *gate {
	g := &gate{key: k, verified: newKnown[fingerprint, core.Identity](maxVerified, 0, nil)}
	for _, p := range providers {
		t := newTrusted(p, audiences, enroller)
		g.providers, g.binds = append(g.providers, t), g.binds || t.binds
	}
	g.refused, _ = lru.New[fingerprint, time.Time](maxRefused) // the only error is a size below 1
	return g
}

// forget drops the cached tokens of a user, "" for all users, because the cached identities include the organization
// role.
func (g *gate) forget(userID string) {
	g.forgetIf(func(id core.Identity) bool { return userID == "" || id.User.ID == userID })
}

// forgetIf drops the cached tokens of the identities that match.
func (g *gate) forgetIf(match func(core.Identity) bool) {
	g.verified.forget(func(_ fingerprint, id core.Identity) bool { return match(id) })
}
