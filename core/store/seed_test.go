package store

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// seed creates n conversations of the owner, a second apart. texts returns the title and the messages of a
// conversation.
func seed(t testing.TB, s *Store, n int, texts func(i int) []string) {
	t.Helper()
	const batch = 10 // a PostgreSQL transaction may take five seconds, even on a busy machine
	begin := time.Now().Add(-time.Duration(n) * time.Second)
	for from := 0; from < n; from += batch {
		err := s.db.Update(t.Context(), "seeding", func(_ context.Context, tx *sql.Tx) error {
			for i := from; i < min(from+batch, n); i++ {
				if err := seedOne(t, s, tx, begin.Add(time.Duration(i)*time.Second), texts(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// imported is like seed, but uses ImportConversations and older times.
func imported(t testing.TB, s *Store, n int, texts func(i int) []string) {
	t.Helper()
	const batch = 5_000
	begin := time.Now().Add(-2 * time.Duration(n) * time.Second)
	for from := 0; from < n; from += batch {
		var some []Transcript
		for i := from; i < min(from+batch, n); i++ {
			all := texts(i)
			one := Transcript{Title: all[0]}
			for _, text := range all[1:] {
				m := said("user", text)
				m.Timestamp = begin.Add(time.Duration(i) * time.Second)
				one.Messages = append(one.Messages, m)
			}
			some = append(some, one)
		}
		if err := s.ImportConversations(t.Context(), core.DefaultWorkspaceID, core.Owner().User.ID, some); err != nil {
			t.Fatal(err)
		}
	}
}

func seedOne(t testing.TB, s *Store, tx *sql.Tx, at time.Time, texts []string) error {
	c, err := s.createConversation(t.Context(), tx, core.Conversation{
		Workspace: core.DefaultWorkspaceID, Owner: core.Owner().User.ID, Title: texts[0],
	}, at)
	if err != nil {
		return err
	}
	key, err := conversationKey(c.ID)
	if err != nil {
		return err
	}
	collection, err := ensureCollection(t.Context(), tx, c.Workspace, c.Owner)
	if err != nil {
		return err
	}
	var add []core.Message
	for _, text := range texts[1:] {
		add = append(add, said("user", text))
	}
	_, err = s.appendMessages(t.Context(), tx, collection, key, prepare(add, at), spent{}, at)
	return err
}
