package access

import (
	"crypto/sha256"
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
	proxyTimes   = 20 // as many attempts may come through one proxy, whatever addresses it forwards

	// Of one client, at most browserLoginBurst + pendingLife/browserLoginEvery = 800 logins are pending at a time, so
	// that it alone cannot have those of others dropped (maxPending).
	browserLoginBurst = 200
	browserLoginEvery = time.Second
)

// attempts limits attempts per client, so that guessing locks no other client out.
type attempts struct {
	clients *lru.Cache[string, *rate.Limiter]
	every   time.Duration
	burst   int
}

func newAttempts(every time.Duration, burst int) *attempts {
	clients, _ := lru.New[string, *rate.Limiter](maxClients) // the one error is a size below 1
	return &attempts{clients, every, burst}
}

// CountWrongKey counts a wrong key of a client, by its address, and of the peer that the request came from, which is
// a proxy when it has another address: 10 at once, then one each 6 seconds, and 20 times as many for a proxy;
// core.CodeRateLimited with RetryAfter beyond that. Keys that are right are not counted, and never refused: one who
// guesses must not lock out others behind the same proxy.
func (a *Access) CountWrongKey(client, peer string) error {
	if err := a.attempts.allow(client); err != nil || network(peer) == network(client) {
		return err
	}
	return a.proxied.allow(peer)
}

// CountBearer is CountWrongKey for a bearer that was refused, if it may be a guess of SERVICE_API_KEY. One of the form of
// a token or of an API key, which may have expired, is not. A client that repeats its last wrong bearer, because it is
// set up wrongly, does not guess.
func (a *Access) CountBearer(bearer, client, peer string) error {
	if k := a.gate.Load().key; !k.set() || formOf(bearer) != k.form {
		return nil
	}
	sum := sha256.Sum256([]byte(bearer))
	if last, known := a.wrongBearers.Get(network(client)); known && last == sum {
		return nil
	}
	a.wrongBearers.Add(network(client), sum)
	return a.CountWrongKey(client, peer)
}

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
	return core.Errorf(core.CodeRateLimited, "too many wrong keys or logins").WithRetryAfter(wait)
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
