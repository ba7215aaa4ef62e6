package session

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Set is this process's live sessions. Its cap is exact: a place is reserved before the work of opening
// a session starts, and released when that fails.
type Set struct {
	max   int
	share int // of max, what one user may have; 0 for all of it

	mu        sync.Mutex
	live      map[string]*Session
	reserved  int            // places: live sessions and those being opened
	users     map[string]int // the same by User.ID
	listeners int            // streams that listen without a session; their cap is the same
	refusing  bool
	calls     int           // in flight, over all sessions
	drained   chan struct{} // closed when refusing and no call is in flight
}

// NewSet returns an empty set with a cap, and one for each user; 0 is no cap for each user.
func NewSet(limit, share int) *Set {
	return &Set{max: limit, share: share, live: map[string]*Session{}, users: map[string]int{}, drained: make(chan struct{})}
}

// Reserve reserves a place for a session that is about to be opened, and counts its initialize as a call
// in flight. ErrFull, ErrShare or ErrShutdown.
func (s *Set) Reserve(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return ErrShutdown
	}
	if s.reserved >= s.max {
		return ErrFull
	}
	if s.share > 0 && s.users[user] >= s.share {
		return ErrShare
	}
	s.reserved++
	s.users[user]++
	s.calls++
	return nil
}

// Release gives a reserved place back.
func (s *Set) Release(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(user)
}

func (s *Set) release(user string) {
	s.reserved--
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
}

// Listen counts a stream that listens without a session. ErrFull or ErrShutdown.
func (s *Set) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return ErrShutdown
	}
	if s.listeners >= s.max {
		return ErrFull
	}
	s.listeners++
	return nil
}

// Unlisten is called when such a stream ended.
func (s *Set) Unlisten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners--
}

// Add makes a session with a reserved place findable. It returns false once the server shuts down.
func (s *Set) Add(one *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return false
	}
	s.live[one.ID] = one
	return true
}

// Remove takes a session out and releases its place. It returns false when another call did.
func (s *Set) Remove(one *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[one.ID] != one {
		return false
	}
	delete(s.live, one.ID)
	s.release(one.Owner.User.ID)
	return true
}

// Find returns the session with an id, nil when there is none.
func (s *Set) Find(id []byte) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[string(id)]
}

// All returns all sessions.
func (s *Set) All() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Session, 0, len(s.live))
	for _, one := range s.live {
		all = append(all, one)
	}
	return all
}

// Records returns the records of all sessions.
func (s *Set) Records() []sessionstore.Record {
	var records []sessionstore.Record
	for _, one := range s.All() {
		records = append(records, one.Record())
	}
	return records
}

// BeginCalls counts calls that start. It returns false once the server shuts down.
func (s *Set) BeginCalls(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return false
	}
	s.calls += n
	return true
}

// EndCalls counts calls that ended.
func (s *Set) EndCalls(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls -= n; s.refusing && s.calls == 0 {
		close(s.drained)
	}
}

// Refuse lets nothing new start.
func (s *Set) Refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return
	}
	if s.refusing = true; s.calls == 0 {
		close(s.drained)
	}
}

// Drain waits, after Refuse, until no call is in flight.
func (s *Set) Drain(ctx context.Context) error {
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
