package metrics

import (
	"sync"
	"sync/atomic"
)

// Limits on the number of values for labels whose values depend on the installed apps or the configuration.
const (
	maxTools  = 2000
	maxApps   = 500
	maxModels = 100
)

// other replaces a label value that is unknown or beyond the limit.
const other = "_OTHER"

// limitedSet admits a limited number of values. It is safe for concurrent use.
type limitedSet struct {
	seen  *sync.Map
	count *atomic.Int64
	limit int64
}

func newLimitedSet(limit int64) limitedSet {
	return limitedSet{seen: &sync.Map{}, count: &atomic.Int64{}, limit: limit}
}

// admits reports whether value is in the set, after adding it if the set is not full.
func (s limitedSet) admits(value string) bool {
	if _, ok := s.seen.Load(value); ok {
		return true
	}
	if s.count.Add(1) > s.limit {
		s.count.Add(-1)
		return false
	}
	if _, loaded := s.seen.LoadOrStore(value, struct{}{}); loaded {
		s.count.Add(-1)
	}
	return true
}

// or returns value, or other if the set is full.
func (s limitedSet) or(value string) string {
	if s.admits(value) {
		return value
	}
	return other
}
