package limits

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

const maxPrincipals = 10_000 // principals whose rates are tracked

// Rates limits how often each principal may do something. It is safe for concurrent use.
type Rates struct {
	known *lru.Cache[string, *rate.Limiter]
	limit rate.Limit
	burst int
}

// NewRates returns Rates that allow a burst and then limit events per second.
func NewRates(limit rate.Limit, burst int) *Rates {
	known, _ := lru.New[string, *rate.Limiter](maxPrincipals) // the only error is a size below 1
	return &Rates{known, limit, burst}
}

// Allow counts one event for a principal. times multiplies the principal's limit. If there are too many events, Allow
// returns the time to wait and does not count this one.
func (r *Rates) Allow(principal string, times int) (wait time.Duration) {
	limiter := rate.NewLimiter(r.limit*rate.Limit(times), r.burst*times)
	if known, ok, _ := r.known.PeekOrAdd(principal, limiter); ok {
		limiter = known
		r.known.Get(principal) // marks the entry as recently used
	}
	now := time.Now()
	event := limiter.ReserveN(now, 1)
	if wait = event.DelayFrom(now); wait > 0 {
		event.CancelAt(now)
	}
	return wait
}
