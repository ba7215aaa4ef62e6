package apps

import (
	"context"
	"sync"
	"time"
)

// starts lets a number of apps start at a time, in the order they asked. One that takes longer than patience goes on
// starting but gives its place away, so that those that hang never hold up the rest.
type starts struct {
	places   chan struct{}
	patience time.Duration
}

func newStarts(atOnce int, patience time.Duration) *starts {
	return &starts{places: make(chan struct{}, atOnce), patience: patience}
}

// acquire waits for a place; the caller calls release when its app has started or failed.
func (s *starts) acquire(ctx context.Context) (release func(), err error) {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	give := sync.OnceFunc(func() { <-s.places })
	timer := time.AfterFunc(s.patience, give)
	return func() {
		timer.Stop()
		give()
	}, nil
}
