package store

import (
	"context"
	"database/sql"

	"github.com/ropewalk/ropewalk/core"
)

const maxEvent = 1 << 20 // bytes of an event's data

// Shared tells whether other servers may use the same state.
func (s *Store) Shared() bool { return s.line != nil }

// Changes tells what other servers have changed, within 2 s, until ctx ends: the channel is closed
// then. A reader that takes its time loses nothing, but is told once of what changed many times. This
// server's own changes are not told. With a file there are no other servers.
func (s *Store) Changes(ctx context.Context) <-chan core.Change {
	out := make(chan core.Change)
	p := newPending()
	stop := func() {}
	if s.line != nil {
		stop = s.line.ears.hearChanges(p)
	}
	go func() {
		defer stop()
		p.feed(ctx, out)
	}()
	return out
}

// Send hands an event to the other servers, without waiting. What cannot be written for long is
// dropped, and the log says so. It does nothing with a file.
func (s *Store) Send(e core.Event) {
	if s.line == nil {
		return
	}
	n, err := eventNotice(e)
	if err != nil || len(n.payload) > maxEvent {
		s.log.Warn("An event cannot be handed to the other servers", "event", e.Name, "bytes", len(n.payload), "error", err)
		return
	}
	select {
	case s.line.outbox <- n:
	default:
		s.log.Warn("An event was not handed to the other servers: too many wait", "event", e.Name)
	}
}

// Receive has deliver called with each event that another server sends, its Data as JSON, until ctx
// ends. deliver must not wait.
func (s *Store) Receive(ctx context.Context, deliver func(core.Event)) {
	if s.line != nil {
		defer s.line.ears.hearEvents(deliver)()
	}
	<-ctx.Done()
}

// note tells the other servers of a change when the transaction commits. It is the last thing that a
// transaction does.
func (s *Store) note(ctx context.Context, tx *sql.Tx, kind core.ChangeKind, workspace, name string) error {
	if s.line == nil {
		return nil
	}
	return writeNotices(ctx, tx, s.line.origin, []notice{{change: core.Change{Kind: kind, Workspace: workspace, Name: name}}})
}
