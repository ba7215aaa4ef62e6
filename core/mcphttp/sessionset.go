package mcphttp

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// sessionSet holds this process's live sessions. Its cap is exact: a place is reserved before opening a session starts
// and is released if that fails.
type sessionSet struct {
	max   int
	share int // how many of max sessions, and of max listeners, one user may have; 0 means no limit

	mu        sync.Mutex
	live      map[string]*session
	reserved  int            // places taken: live sessions and those being opened
	users     map[string]int // the same, by User.ID
	listeners int            // streams that listen without a session; they have the same caps
	listening map[string]int // the same, by User.ID
	refusing  bool
	calls     int           // in flight, across all sessions
	drained   chan struct{} // closed once refusing is set and no call is in flight
}

// newSessionSet returns an empty set with a cap of limit sessions, and of share sessions per user. A share of 0 means no
// cap per user.
func newSessionSet(limit, share int) *sessionSet {
	return &sessionSet{max: limit, share: share, live: map[string]*session{}, users: map[string]int{}, listening: map[string]int{}, drained: make(chan struct{})}
}

// Reserve reserves a place for a session that is about to be opened, and counts its initialize as an in-flight call. It
// returns errFull, errShare or errShutdown.
func (s *sessionSet) Reserve(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return errShutdown
	}
	if s.reserved >= s.max {
		return errFull
	}
	if s.share > 0 && s.users[user] >= s.share {
		return errShare
	}
	s.reserved++
	s.users[user]++
	s.calls++
	return nil
}

// Release releases a reserved place.
func (s *sessionSet) Release(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(user)
}

func (s *sessionSet) release(user string) {
	s.reserved--
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
}

// Listen counts a stream that listens without a session. It returns errFull, errShare or errShutdown.
func (s *sessionSet) Listen(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return errShutdown
	}
	if s.listeners >= s.max {
		return errFull
	}
	if s.share > 0 && s.listening[user] >= s.share {
		return errShare
	}
	s.listeners++
	s.listening[user]++
	return nil
}

// Unlisten removes such a stream from the count once it has ended.
func (s *sessionSet) Unlisten(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners--
	if s.listening[user]--; s.listening[user] == 0 {
		delete(s.listening, user)
	}
}

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
	s.release(one.Owner.User.ID)
	return true
}

// Find returns the session with the given ID, or nil when there is none.
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

// Drain waits, after Refuse, until no call is in flight. The error is ctx's.
func (s *sessionSet) Drain(ctx context.Context) error {
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
