package schedule

import (
	"context"
	"sync"
	"time"
)

// Queue lets a number of apps start at the same time, in the order they asked. An app that takes
// longer than a time limit goes on starting but releases its place, so that apps that hang do not
// hold up the others.
type Queue struct {
	places  chan struct{}
	timeout time.Duration
}

// NewQueue returns a queue of atOnce places, each held for at most timeout.
func NewQueue(atOnce int, timeout time.Duration) *Queue {
	return &Queue{places: make(chan struct{}, atOnce), timeout: timeout}
}

// Acquire waits for a place; the caller calls release when its app has started or failed.
func (q *Queue) Acquire(ctx context.Context) (release func(), err error) {
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
