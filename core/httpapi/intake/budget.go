package intake

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// budget bounds the bytes of large bodies that requests in flight hold.
type budget struct {
	bytes *semaphore.Weighted
	size  int64
}

// newBudget returns a budget; size 0 is one without a bound.
func newBudget(size int64) *budget {
	if size == 0 {
		return &budget{}
	}
	return &budget{bytes: semaphore.NewWeighted(size), size: size}
}

// acquire waits until n bytes are free: core.CodeUnavailable when that takes longer than patience. A body
// larger than the whole budget takes all of it.
func (b *budget) acquire(n int, patience time.Duration) (release func(), err error) {
	if b.bytes == nil {
		return func() {}, nil
	}
	weight := min(int64(n), b.size)
	if !b.bytes.TryAcquire(weight) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if b.bytes.Acquire(ctx, weight) != nil {
			return nil, busy()
		}
	}
	return func() { b.bytes.Release(weight) }, nil
}
