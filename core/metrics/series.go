package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
)

// series caches the time series of a metric by key. Finding a series by its labels costs several times as much as
// finding it by its key, and every tool call needs four series (BenchmarkAToolCall). The set of keys must be bounded.
type series[K comparable, V any] struct {
	find func(K) (v V, bounded bool) // finds a series by its labels; a series whose key is not bounded is not cached

	mu   sync.Mutex // held while adding a series
	kept atomic.Pointer[map[K]V]
}

// of returns the series for a key.
func (s *series[K, V]) of(key K) V {
	if kept := s.kept.Load(); kept != nil {
		if v, ok := (*kept)[key]; ok {
			return v
		}
	}
	return s.add(key)
}

func (s *series[K, V]) add(key K) V {
	v, bounded := s.find(key)
	if !bounded {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[K]V{}
	if kept := s.kept.Load(); kept != nil {
		next = maps.Clone(*kept)
	}
	next[key] = v
	s.kept.Store(&next)
	return v
}
