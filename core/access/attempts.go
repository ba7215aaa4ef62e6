package access

import (
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxClients   = 10_000 // clients whose attempts are counted
	attemptBurst = 10
	attemptEvery = 6 * time.Second

	// Of one client, at most browserLoginBurst + pendingLife/browserLoginEvery = 800 logins are pending at a time, so
	// that it alone cannot have those of others dropped (maxPending).
	browserLoginBurst = 200
	browserLoginEvery = time.Second
)

// attempts limits logins per client, so that guessing is slow and locks no other client out.
type attempts struct {
	clients *lru.Cache[string, *rate.Limiter]
	every   time.Duration
	burst   int
}

func newAttempts(every time.Duration, burst int) *attempts {
	clients, _ := lru.New[string, *rate.Limiter](maxClients) // the one error is a size below 1
	return &attempts{clients, every, burst}
}

// AllowLogin counts one login attempt of a client, by its address: 10 at once, then one each 6
// seconds; core.CodeRateLimited with RetryAfter beyond that. Call it before Login.
func (a *Access) AllowLogin(client string) error { return a.attempts.allow(client) }

// AllowBrowserLogin counts one browser login that a client begins, by its address: 200 at once, then one each second;
// core.CodeRateLimited with RetryAfter beyond that. Call it before BeginLogin.
func (a *Access) AllowBrowserLogin(client string) error { return a.browserLogins.allow(client) }

func (a *attempts) allow(client string) error {
	limiter := rate.NewLimiter(rate.Every(a.every), a.burst)
	if known, ok, _ := a.clients.PeekOrAdd(network(client), limiter); ok {
		limiter = known
		a.clients.Get(network(client)) // counts as used
	}
	now := time.Now()
	r := limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	return core.Errorf(core.CodeRateLimited, "too many login attempts").WithRetryAfter(wait)
}

// network is what counts as one client: an IPv4 address, or the /64 of an IPv6 address, which is what
// one customer usually has.
func network(client string) string {
	addr, err := netip.ParseAddr(client)
	if err != nil {
		return client
	}
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	prefix, err := addr.Prefix(64)
	if err != nil {
		return client
	}
	return prefix.String()
}
