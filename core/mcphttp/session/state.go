package session

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// maxState is how long the state of a record may be (the store's contract), bytes. A session whose
// client declared more is not taken over.
const maxState = 64 << 10

// numbersPerServer separates what the servers of a session number: a client may still name an event, a
// question or a stream of the server that had the session before.
const numbersPerServer = 1 << 40

// state is what the record of a session keeps for the server that takes it over.
type state struct {
	User         string          `json:"user"`
	View         string          `json:"view,omitempty"` // of the address that it was opened at
	Capabilities json.RawMessage `json:"capabilities"`
	Level        string          `json:"level,omitempty"`
	Takeovers    int64           `json:"takeovers,omitempty"` // how often it was taken over
}

// Restore returns the session of a record that another server wrote, for a caller whose session it is. It
// returns false when the record does not hold enough, or the session was opened by another user: one
// that was deleted since, and came back under the same name.
func Restore(owner core.Caller, record sessionstore.Record) (s *Session, level string, ok bool) {
	var kept state
	if json.Unmarshal([]byte(record.State), &kept) != nil || len(kept.Capabilities) == 0 || kept.User != owner.User.ID || kept.View != owner.View {
		return nil, "", false
	}
	s = New(owner, record, kept.Capabilities)
	s.level, s.takeovers = kept.Level, kept.Takeovers+1
	s.missed = []core.Kind{core.KindTools, core.KindPrompts, core.KindResources}
	first := s.takeovers * numbersPerServer
	s.last, s.lastQuestion = first, first
	s.Journal.StartAfter(first)
	return s, kept.Level, true
}

// OpenedBy returns the id of the user who opened the session of a record, "" if the record does not say, and the view of
// the address that it was opened at.
func OpenedBy(record sessionstore.Record) (user, view string) {
	var kept state
	_ = json.Unmarshal([]byte(record.State), &kept) // without a valid state nobody is named
	return kept.User, kept.View
}

// Lease is the lease of the server that has the session, as its record says.
func (s *Session) Lease() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Owner
}

// RecordFor is the record of the session for the server with a lease; without one it is what a store
// keeps that does not hand over sessions.
func (s *Session) RecordFor(lease string) sessionstore.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.record
	rec.Owner, rec.State = lease, ""
	if lease == "" {
		return rec
	}
	text, err := json.Marshal(state{User: s.Owner.User.ID, View: s.Owner.View, Capabilities: s.Capabilities, Level: s.level, Takeovers: s.takeovers})
	if err == nil && len(text) <= maxState {
		rec.State = string(text)
	}
	return rec
}

// Keep records owner and state of a record that was written.
func (s *Session) Keep(rec sessionstore.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Owner, s.record.State = rec.Owner, rec.State
}

// SetLevel records the log level that the client set, for the server that takes the session over.
func (s *Session) SetLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}
