package accounts

import (
	"context"
	"slices"
	"sync"
)

// slots limits the renewals that are in progress: maxRenewals in total, and maxRenewalsEach for each key.
type slots struct {
	total chan struct{}

	mu   sync.Mutex
	each map[string]*slot
}

type slot struct {
	taken chan struct{}
	users int // calls that hold it or wait for it
}

func newSlots() *slots {
	return &slots{total: make(chan struct{}, maxRenewals), each: map[string]*slot{}}
}

// acquire waits for a slot for each key, and then for one of the slots shared by all keys, so a call that waits for its
// key does not hold up renewals with other keys. ok is false if ctx ended first; call release in either case. All callers must
// pass the same kinds of keys in the same order, or two calls could wait for each other.
func (s *slots) acquire(ctx context.Context, keys ...string) (release func(), ok bool) {
	var releases []func()
	release = func() {
		for _, one := range slices.Backward(releases) {
			one()
		}
	}
	take := func(from chan struct{}) bool {
		select {
		case from <- struct{}{}:
			releases = append(releases, func() { <-from })
			return true
		case <-ctx.Done():
			return false
		}
	}
	for _, key := range keys {
		one := s.use(key)
		releases = append(releases, func() { s.drop(key) })
		if !take(one.taken) {
			return release, false
		}
	}
	return release, take(s.total)
}

func (s *slots) use(key string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.each[key]
	if one == nil {
		one = &slot{taken: make(chan struct{}, maxRenewalsEach)}
		s.each[key] = one
	}
	one.users++
	return one
}

func (s *slots) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each[key].users--; s.each[key].users == 0 {
		delete(s.each, key)
	}
}
