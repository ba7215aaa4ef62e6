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

// ServerID is the name of this server among those on the database, "" with a file.
func (s *Store) ServerID() string {
	if s.cluster == nil {
		return ""
	}
	return s.cluster.ServerID()
}

// CheckNotices returns core.CodeUnavailable when notices of other servers do not arrive, or those of this one do
// not leave. With a file there are no other servers.
func (s *Store) CheckNotices(context.Context) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Check()
}

// Changes returns what other servers change, within 2 s, until ctx ends: the channel is closed then. A
// slow reader loses nothing, but gets once what changed many times. This server's own changes are not
// among them. With a file there are no other servers.
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

// Send queues an event for the other servers, without waiting. One that cannot be written for long is
// dropped, and the log says so. It does nothing with a file.
func (s *Store) Send(e core.Event) {
	if s.cluster == nil {
		return
	}
	if err := s.cluster.Publish(e); err != nil {
		s.log.Warn("event not sent to the other servers", "event", e.Name, "error", err)
	}
}

// Receive calls deliver with each event that another server sends, its Data as JSON, until ctx ends.
// deliver must not wait.
func (s *Store) Receive(ctx context.Context, deliver func(core.Event)) {
	if s.cluster != nil {
		defer s.cluster.Subscribe(deliver)()
	}
	<-ctx.Done()
}

// RequestPeer has another server answer a question about a topic. core.CodeNotFound when there is no such server any
// more; core.CodeUnavailable when it ended before it answered, or question or answer are larger than
// 4 MiB. When ctx ends, the other server stops working on it.
func (s *Store) RequestPeer(ctx context.Context, server, topic string, question json.RawMessage) (json.RawMessage, error) {
	if s.cluster == nil {
		return nil, core.Errorf(core.CodeUnavailable, "there are no other servers: the state is a file")
	}
	return s.cluster.Request(ctx, server, topic, question)
}

// ServePeers calls handle for each question of another server about a topic, at most 256 at a time, until ctx ends; it
// returns when the last one is answered. handle returns when its context ends. A topic has one ServePeers at a time.
func (s *Store) ServePeers(ctx context.Context, topic string, handle func(ctx context.Context, question json.RawMessage) json.RawMessage) {
	if s.cluster != nil {
		defer s.cluster.Handle(topic, handle)()
	}
	<-ctx.Done()
}

// notifyPeers tells the other servers of a change when the transaction commits. It must be the last
// statement of the transaction.
func (s *Store) notifyPeers(ctx context.Context, tx *sql.Tx, kind core.ChangeKind, workspace, name string) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Notify(ctx, tx, core.Change{Kind: kind, Workspace: workspace, Name: name})
}

// memberWatchers are called when users, members, roles, keys, logins or names of workspaces have changed.
type memberWatchers struct {
	mu  sync.Mutex
	all []func(userID string)
}

// WatchMembers has changed called with a user's id, "" for all users, whenever this server has changed a user, what the
// user is a member of, a role, a key or a login. The change is durable then, and the method that made it returns when
// changed has. Changes of other servers are among Changes.
func (s *Store) WatchMembers(changed func(userID string)) {
	s.members.mu.Lock()
	defer s.members.mu.Unlock()
	s.members.all = append(s.members.all, changed)
}

// changeMembers runs a transaction that changes what WatchMembers names, and announces that to this server and the others.
// do returns whose rights may have changed: no users when nothing was changed, "" for all users.
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

// of is do for a change that always concerns one user, "" for all.
func of(user string, do database.Do) func(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return func(ctx context.Context, tx *sql.Tx) ([]string, error) { return []string{user}, do(ctx, tx) }
}
