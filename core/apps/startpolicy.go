package apps

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Policy determines when a crashed app is restarted.
type Policy struct {
	Delays       []time.Duration // before each attempt; a process gets as many attempts as there are delays
	Jitter       float64         // maximum fraction of a delay that is added at random
	HealthyAfter time.Duration   // after running this long, an app gets all its attempts again

	// RemoteMax is the maximum delay for remote apps, which are retried as long as they should be running. After
	// Delays, each delay is twice the previous one.
	RemoteMax time.Duration
}

// DefaultPolicy returns a policy with three attempts: immediately, after 1 s and after 4 s, with jitter. The count is
// reset once the app has been up for 60 s. Remote apps are retried at least every 60 s.
func DefaultPolicy() Policy {
	return Policy{
		Delays:       []time.Duration{0, time.Second, 4 * time.Second},
		Jitter:       0.1,
		HealthyAfter: time.Minute,
		RemoteMax:    time.Minute,
	}
}

// attempts counts the restarts of one app under a policy.
type attempts struct {
	Policy Policy
	Remote bool // whether it is a remote app, which is retried as long as it should be running
	used   int
}

// Next is called when an app has crashed or could not be restarted. up is how long it had been running. It returns the
// number of the next attempt, starting at 1, and how long to wait before it. ok is false if no attempts are left.
func (a *attempts) Next(up time.Duration) (attempt int, delay time.Duration, ok bool) {
	if up >= a.Policy.HealthyAfter {
		a.used = 0
	}
	switch {
	case a.used < len(a.Policy.Delays):
		delay = a.Policy.Delays[a.used]
	case a.Remote:
		delay = a.backoff()
	default:
		return 0, 0, false
	}
	if a.Policy.Jitter > 0 {
		delay += time.Duration(rand.Float64() * a.Policy.Jitter * float64(delay))
	}
	a.used++
	return a.used, delay, true
}

// backoff returns the delay once all Delays are used up. Jitter does not increase it beyond RemoteMax.
func (a *attempts) backoff() time.Duration {
	limit := time.Duration(float64(a.Policy.RemoteMax) / (1 + a.Policy.Jitter))
	delay := time.Second
	if n := len(a.Policy.Delays); n > 0 {
		delay = max(delay, a.Policy.Delays[n-1])
	}
	for range a.used - len(a.Policy.Delays) + 1 {
		if delay *= 2; delay >= limit {
			return limit
		}
	}
	return delay
}

// startQueue limits how many apps start at the same time. They start in the order in which they called Acquire. An app
// that takes longer than the timeout continues to start but gives up its place, so that apps that hang do not block the
// others.
type startQueue struct {
	places  chan struct{}
	timeout time.Duration
}

// newStartQueue returns a queue with atOnce places, each held for at most timeout.
func newStartQueue(atOnce int, timeout time.Duration) *startQueue {
	return &startQueue{places: make(chan struct{}, atOnce), timeout: timeout}
}

// Acquire waits for a place. The caller must call release when its app has started or failed.
func (q *startQueue) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case q.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	free := sync.OnceFunc(func() { <-q.places })
	timer := time.AfterFunc(q.timeout, free)
	return func() {
		timer.Stop()
		free()
	}, nil
}
