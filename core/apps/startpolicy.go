package apps

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Policy says when a crashed app is restarted.
type Policy struct {
	Delays  []time.Duration // before each attempt; for a process there are as many attempts as delays
	Jitter  float64         // the largest part of a delay that is added at random
	Healthy time.Duration   // an app that ran this long has all its attempts again

	// RemoteMax is the longest delay of remote apps, which are tried as long as they are wanted: after
	// Delays each delay is twice the one before.
	RemoteMax time.Duration
}

// DefaultPolicy returns three attempts: at once, after 1 s and after 4 s with jitter. They are counted
// anew after 60 s healthy. Remote apps are tried again at least every 60 s.
func DefaultPolicy() Policy {
	return Policy{
		Delays:    []time.Duration{0, time.Second, 4 * time.Second},
		Jitter:    0.1,
		Healthy:   time.Minute,
		RemoteMax: time.Minute,
	}
}

// attempts counts the restarts of one app under a policy.
type attempts struct {
	Policy Policy
	Remote bool // whether it is a remote app, which is tried for as long as it is wanted
	used   int
}

// Next is called when an app has crashed, or could not be restarted, after it had been up for a time.
// It returns the number of the attempt to make, from 1, and how long to wait before it; ok is false
// when all attempts are used up.
func (a *attempts) Next(up time.Duration) (attempt int, delay time.Duration, ok bool) {
	if up >= a.Policy.Healthy {
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

// backoff returns the delay after all Delays. Jitter does not take it above RemoteMax.
func (a *attempts) backoff() time.Duration {
	most := time.Duration(float64(a.Policy.RemoteMax) / (1 + a.Policy.Jitter))
	delay := time.Second
	if n := len(a.Policy.Delays); n > 0 {
		delay = max(delay, a.Policy.Delays[n-1])
	}
	for range a.used - len(a.Policy.Delays) + 1 {
		if delay *= 2; delay >= most {
			return most
		}
	}
	return delay
}

// startQueue lets a number of apps start at the same time, in the order they asked. An app that takes
// longer than a time limit goes on starting but releases its place, so that apps that hang do not
// hold up the others.
type startQueue struct {
	places  chan struct{}
	timeout time.Duration
}

// newStartQueue returns a queue of atOnce places, each held for at most timeout.
func newStartQueue(atOnce int, timeout time.Duration) *startQueue {
	return &startQueue{places: make(chan struct{}, atOnce), timeout: timeout}
}

// Acquire waits for a place; the caller calls release when its app has started or failed.
func (q *startQueue) Acquire(ctx context.Context) (release func(), err error) {
	select {
	case q.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	give := sync.OnceFunc(func() { <-q.places })
	timer := time.AfterFunc(q.timeout, give)
	return func() {
		timer.Stop()
		give()
	}, nil
}
