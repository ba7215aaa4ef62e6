package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Shared reports whether other servers may use the same state.
func (s *Store) Shared() bool { return s.cluster != nil }

// ServerID returns the id of this server, which is unique among the servers on the database; "" if the state is an
// SQLite file.
func (s *Store) ServerID() string {
	if s.cluster == nil {
		return ""
	}
	return s.cluster.ServerID()
}

// CheckNotices returns core.CodeUnavailable if notices from other servers are not arriving, or this server's notices are
// not being written. If the state is an SQLite file, there are no other servers and it returns nil.
func (s *Store) CheckNotices(context.Context) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Check()
}

// Changes returns a channel with the changes that other servers make, which arrive within 2 s. It is closed when ctx
// ends. A slow reader does not miss changes, but repeated changes to the same thing are delivered once. This server's
// own changes are not included. If the state is an SQLite file, there are no other servers.
func (s *Store) Changes(ctx context.Context) <-chan core.Change {
	if s.cluster != nil {
		return s.cluster.Changes(ctx)
	}
	none := make(chan core.Change)
	go func() {
		<-ctx.Done()
		close(none)
	}()
	return none
}

// Send queues an event for the other servers, without blocking. An event that is too large or does not fit into the
// queue is dropped and logged. It does nothing if the state is an SQLite file.
func (s *Store) Send(e core.Event) {
	if s.cluster == nil {
		return
	}
	if err := s.cluster.Publish(e); err != nil {
		s.log.Warn("event not sent to the other servers", "event", e.Name, "error", err)
	}
}

// Receive calls deliver with each event that another server sends, with its Data as JSON, until ctx ends.
// deliver must not block.
func (s *Store) Receive(ctx context.Context, deliver func(core.Event)) {
	if s.cluster != nil {
		defer s.cluster.Subscribe(deliver)()
	}
	<-ctx.Done()
}

// RequestPeer asks another server a question about a topic. The error is core.CodeNotFound if the server no
// longer exists, and core.CodeUnavailable if it is busy or stopped before it answered, or if the question or the answer is larger
// than 4 MiB. When ctx ends, the other server stops working on the question.
func (s *Store) RequestPeer(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error) {
	if s.cluster == nil {
		return nil, core.Errorf(core.CodeUnavailable, "there are no other servers, because the database is a file")
	}
	return s.cluster.Request(ctx, server, topic, question)
}

// ServePeers calls handle for each question from another server about a topic until ctx ends, up to limit at a time. It
// returns when the last question has been answered. handle must return when its context ends. There can be only one ServePeers
// for a topic at a time.
func (s *Store) ServePeers(ctx context.Context, topic string, limit int, handle func(ctx context.Context, question json.RawMessage) json.RawMessage) {
	if s.cluster != nil {
		defer s.cluster.Handle(topic, limit, handle)()
	}
	<-ctx.Done()
}

// notifyPeers notifies the other servers of a change when the transaction commits. It must be the last
// statement of the transaction.
func (s *Store) notifyPeers(ctx context.Context, tx *sql.Tx, kind core.ChangeKind, workspace, name string) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Notify(ctx, tx, core.Change{Kind: kind, Workspace: workspace, Name: name})
}

// memberWatchers contains functions that are called when users, members, roles, keys, logins or workspace names have changed.
type memberWatchers struct {
	mu  sync.Mutex
	all []func(userID string)
}

// WatchMembers registers changed, which is called with a user's id, "" for all users, whenever this server has changed a
// user, a membership, a role, a key or a login. The change is already durable, and the method that made it returns after
// changed does. Changes by other servers arrive through Changes.
func (s *Store) WatchMembers(changed func(userID string)) {
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	s.members.all = append(s.members.all, changed)
}

// changeMembers runs a transaction that changes something that WatchMembers reports, and announces the change to this
// server and the others. do returns the ids of users whose rights may have changed: none if nothing changed, "" for all.
func (s *Store) changeMembers(ctx context.Context, what, workspace string, do func(ctx context.Context, tx *sql.Tx) (users []string, err error)) error {
	var users []string
	err := s.db.Update(ctx, what, func(ctx context.Context, tx *sql.Tx) (err error) {
		if users, err = do(ctx, tx); err != nil {
			return err
		}
		for _, user := range users {
			if err := s.notifyPeers(ctx, tx, core.ChangeMembers, workspace, user); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.members.mu.Lock()
	watchers := s.members.all
	s.members.mu.Unlock()
	for _, user := range users {
		for _, changed := range watchers {
			changed(user)
		}
	}
	return nil
}

// of adapts do for a change that always affects the given user, or all users if user is "".
func of(user string, do database.Do) func(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return func(ctx context.Context, tx *sql.Tx) ([]string, error) { return []string{user}, do(ctx, tx) }
}
