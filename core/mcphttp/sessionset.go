package mcphttp

import (
	"cmp"
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// sessionSet contains this process's live sessions. Its cap is exact: a place is reserved before opening a session
// starts and is released if that fails.
type sessionSet struct {
	sessions  *limits.Places // by User.ID; taken by live sessions and those being opened
	listeners *limits.Places // by User.ID; taken by streams that listen without a session

	mu       sync.Mutex
	live     map[string]*session
	refusing bool
	calls    int           // number of calls in flight in all sessions
	drained  chan struct{} // closed once refusing is set and no call is in flight
}

// newSessionSet returns an empty set with a cap of limit sessions, and of share sessions per user. A share of 0 means
// no cap per user.
func newSessionSet(limit, share int) *sessionSet {
	share = cmp.Or(share, limit)
	return &sessionSet{
		sessions: limits.NewPlaces(limit, share), listeners: limits.NewPlaces(limit, share),
		live: map[string]*session{}, drained: make(chan struct{}),
	}
}

// Reserve reserves a place for a session that is about to be opened, and counts its initialize as an in-flight call. It
// returns limits.ErrFull, limits.ErrShare or errShutdown.
func (s *sessionSet) Reserve(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return errShutdown
	}
	err := s.sessions.Take(user)
	if err == nil {
		s.calls++
	}
	return err
}

// Release releases a reserved place.
func (s *sessionSet) Release(user string) { s.sessions.Release(user) }

// Listen counts a stream that listens without a session. It returns limits.ErrFull, limits.ErrShare or errShutdown.
func (s *sessionSet) Listen(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return errShutdown
	}
	return s.listeners.Take(user)
}

// Unlisten stops counting a stream once it has ended.
func (s *sessionSet) Unlisten(user string) { s.listeners.Release(user) }

// Add makes a session with a reserved place findable. It returns false once the server is shutting down.
func (s *sessionSet) Add(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return false
	}
	s.live[one.ID] = one
	return true
}

// Remove removes a session and releases its place. It returns false if the session is no longer in the set.
func (s *sessionSet) Remove(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[one.ID] != one {
		return false
	}
	delete(s.live, one.ID)
	s.sessions.Release(one.Owner.User.ID)
	return true
}

// Find returns the session with the given ID, or nil if there is none.
func (s *sessionSet) Find(id []byte) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[string(id)]
}

// All returns all sessions.
func (s *sessionSet) All() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.live))
	for _, one := range s.live {
		all = append(all, one)
	}
	return all
}

// Records returns the records of all sessions.
func (s *sessionSet) Records() []sessionstore.Record {
	var records []sessionstore.Record
	for _, one := range s.All() {
		records = append(records, one.Record())
	}
	return records
}

// BeginCalls counts n calls as in flight. It returns false once the server is shutting down.
func (s *sessionSet) BeginCalls(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return false
	}
	s.calls += n
	return true
}

// EndCalls removes n calls that have ended from the count.
func (s *sessionSet) EndCalls(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls -= n; s.refusing && s.calls == 0 {
		close(s.drained)
	}
}

// Refuse makes the set refuse new sessions, listeners and calls.
func (s *sessionSet) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return
	}
	if s.refusing = true; s.calls == 0 {
		close(s.drained)
	}
}

// Drain waits, after Refuse, until no call is in flight. It returns ctx's error if ctx ends first.
func (s *sessionSet) Drain(ctx context.Context) error {
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
