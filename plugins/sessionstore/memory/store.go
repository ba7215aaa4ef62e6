package memory

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Store is a sessionstore.Store in memory. Lifetimes are as exact as the clock. The next call of any method removes
// expired records.
type Store struct {
	mu      sync.Mutex
	entries map[string]*entry
	queue   expiryQueue
}

type entry struct {
	rec     sessionstore.Record
	expires time.Time
	place   int // in the queue
}

// New returns an empty store.
func New() *Store { return &Store{entries: map[string]*entry{}} }

// Name returns "memory".
func (*Store) Name() string { return "memory" }

// Put implements sessionstore.Store.
func (s *Store) Put(_ context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := sessionstore.CheckPut(rec, ttl); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.forgetExpired()
	if e, ok := s.entries[rec.ID]; ok {
		e.rec = rec
		s.prolong(e, now.Add(ttl))
		return nil
	}
	e := &entry{rec: rec, expires: now.Add(ttl)}
	s.entries[rec.ID] = e
	heap.Push(&s.queue, e)
	return nil
}

// Get implements sessionstore.Store.
func (s *Store) Get(_ context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetExpired()
	e, ok := s.entries[id]
	if !ok {
		return sessionstore.Record{}, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	rec := e.rec
	rec.ExpiresAt = e.expires
	return rec, nil
}

// Touch implements sessionstore.Store.
func (s *Store) Touch(_ context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.forgetExpired()
	for _, touch := range batch {
		e, ok := s.entries[touch.ID]
		if !ok {
			continue
		}
		if touch.LastAccessedAt.After(e.rec.LastAccessedAt) {
			e.rec.LastAccessedAt = touch.LastAccessedAt
		}
		s.prolong(e, now.Add(touch.TTL))
	}
	return nil
}

// Delete implements sessionstore.Store.
func (s *Store) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetExpired()
	if e, ok := s.entries[id]; ok {
		heap.Remove(&s.queue, e.place)
		delete(s.entries, id)
	}
	return nil
}

// Len returns the number of sessions.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetExpired()
	return len(s.entries)
}

func (s *Store) prolong(e *entry, expires time.Time) {
	e.expires = expires
	heap.Fix(&s.queue, e.place)
}

// forgetExpired removes expired sessions and returns the current time. If none has expired, it only looks at the head
// of the queue.
func (s *Store) forgetExpired() (now time.Time) {
	now = time.Now()
	for len(s.queue) > 0 && !s.queue[0].expires.After(now) {
		e := heap.Pop(&s.queue).(*entry)
		delete(s.entries, e.rec.ID)
	}
	return now
}
