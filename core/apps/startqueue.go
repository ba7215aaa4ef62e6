package apps

import (
	"context"
	"sync"
	"time"
)

// startQueue lets a number of apps start at the same time, in the order they asked. An app that takes
// longer than a time limit goes on starting but releases its place, so that apps that hang do not
// hold up the others.
type startQueue struct {
	places  chan struct{}
	timeout time.Duration
}

func newStartQueue(atOnce int, timeout time.Duration) *startQueue {
	return &startQueue{places: make(chan struct{}, atOnce), timeout: timeout}
}

// acquire waits for a place; the caller calls release when its app has started or failed.
func (q *startQueue) acquire(ctx context.Context) (release func(), err error) {
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
