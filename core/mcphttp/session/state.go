package session

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// maxState is the maximum size of a record's state in bytes, as the store's contract defines it. A session whose client
// declared more cannot be taken over.
const maxState = 64 << 10

// numbersPerServer separates the numbers that successive servers of a session assign, because a client may still name
// an event, a question or a stream of the previous server.
const numbersPerServer = 1 << 40

// state is the part of a session's record that is for a server that takes the session over.
type state struct {
	User         string          `json:"user"`
	View         string          `json:"view,omitempty"` // of the address at which it was opened
	Capabilities json.RawMessage `json:"capabilities"`
	Level        string          `json:"level,omitempty"`
	Takeovers    int64           `json:"takeovers,omitempty"` // how often the session was taken over
}

// Restore returns the session of a record that another server wrote, for the caller who owns it. It returns false if
// the record lacks necessary state or if another user opened the session: one who was deleted and has since come back
// under the same name.
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

// OpenedBy returns the ID of the user who opened a record's session, or "" if the record does not say, and the view of
// the address at which it was opened.
func OpenedBy(record sessionstore.Record) (user, view string) {
	var kept state
	_ = json.Unmarshal([]byte(record.State), &kept) // without a valid state nobody is named
	return kept.User, kept.View
}

// Lease returns the lease of the server that has the session, according to its record.
func (s *Session) Lease() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Owner
}

// RecordFor returns the session's record with the given lease as its owner. Without a lease, it returns the record for
// a store that does not support takeovers.
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

// Keep records the owner and state of a record that was written to the store.
func (s *Session) Keep(rec sessionstore.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Owner, s.record.State = rec.Owner, rec.State
}

// SetLevel records the log level that the client set, for a server that takes the session over.
func (s *Session) SetLevel(level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}
