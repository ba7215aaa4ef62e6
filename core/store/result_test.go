package store

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// keep stores a result for an hour.
func keep(t *testing.T, s *Store, r core.KeptResult) {
	t.Helper()
	r.Tool, r.MediaType, r.ExpiresAt = "a__b", "text/plain", time.Now().Add(time.Hour)
	r.Length = len([]rune(r.Text))
	if err := s.KeepResult(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// members returns new members of the default workspace.
func members(t *testing.T, s *Store, names ...string) (all []core.User) {
	t.Helper()
	for _, name := range names {
		u := somebody(t, s, name)
		if err := s.PutMember(t.Context(), core.DefaultWorkspaceID, u.ID, core.RoleMember); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

// keptIDs returns the ids of the stored results.
func keptIDs(t *testing.T, s *Store) string {
	t.Helper()
	ids, err := database.List(t.Context(), s.db, "reading the results", `SELECT id FROM kept_results ORDER BY id`, nil, func(row database.Row) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

func TestAKeptResultIsReadInPartsOnlyByItsOwner(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		people := members(t, s, "alice", "bob")
		alice, bob := people[0], people[1]
		key, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: "k", User: alice, Workspace: core.DefaultWorkspaceID, Role: core.RoleMember}, "hash")
		if err != nil {
			t.Fatal(err)
		}
		mine := core.KeptResult{ID: "res_1", Workspace: core.DefaultWorkspaceID, User: alice.ID, Text: "häuser\x00 und 木"}
		keys := core.KeptResult{ID: "res_2", Workspace: core.DefaultWorkspaceID, User: alice.ID, Key: key.ID, Text: "the key's"}
		keep(t, s, mine)
		keep(t, s, keys)
		for _, c := range []struct {
			offset, length int
			want           string
		}{{0, 3, "häu"}, {12, 100, "木"}, {13, 5, ""}, {100, 5, ""}, {1, 1, "ä"}, {6, 1, "�"}, {0, 1 << 30, "häuser� und 木"}} {
			r, err := s.KeptResult(t.Context(), core.KeptResult{ID: "res_1", Workspace: core.DefaultWorkspaceID, User: alice.ID}, c.offset, c.length)
			if err != nil || r.Text != c.want || r.Length != 13 || r.Tool != "a__b" || r.MediaType != "text/plain" {
				t.Errorf("%d characters from %d: %+v, %v", c.length, c.offset, r, err)
			}
		}
		if r, err := s.KeptResult(t.Context(), keys, 0, 100); err != nil || r.Text != "the key's" {
			t.Errorf("with the key: %+v, %v", r, err)
		}
		for name, r := range map[string]core.KeptResult{
			"another person":        {ID: "res_1", Workspace: core.DefaultWorkspaceID, User: bob.ID},
			"a key of the person":   {ID: "res_1", Workspace: core.DefaultWorkspaceID, User: alice.ID, Key: key.ID},
			"the person of the key": {ID: "res_2", Workspace: core.DefaultWorkspaceID, User: alice.ID},
			"another workspace":     {ID: "res_1", Workspace: "ws_other", User: alice.ID},
			"another id":            {ID: "res_3", Workspace: core.DefaultWorkspaceID, User: alice.ID},
		} {
			if _, err := s.KeptResult(t.Context(), r, 0, 1); core.CodeOf(err) != core.CodeNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAKeptResultIsDeletedWhenItsReaderLosesAccess(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		alice, bob, cleo := somebody(t, s, "alice"), somebody(t, s, "bob"), somebody(t, s, "cleo")
		dora := somebody(t, s, "dora") // an admin of the organization needs no membership
		w, err := s.CreateWorkspace(t.Context(), "Team", alice.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range []core.User{bob, cleo} {
			if err := s.PutMember(t.Context(), w.ID, u.ID, core.RoleMember); err != nil {
				t.Fatal(err)
			}
		}
		key, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: "k", User: alice, Workspace: w.ID, Role: core.RoleMember}, "hash")
		if err != nil {
			t.Fatal(err)
		}
		for id, r := range map[string]core.KeptResult{"1 alice": {User: alice.ID}, "2 key": {User: alice.ID, Key: key.ID}, "3 bob": {User: bob.ID}, "4 cleo": {User: cleo.ID}, "5 dora": {User: dora.ID}} {
			r.ID, r.Workspace, r.Text = id, w.ID, "x"
			keep(t, s, r)
		}
		for _, step := range []struct {
			what string
			do   func() error
			want string
		}{
			{"nothing", func() error { return nil }, "1 alice 2 key 3 bob 4 cleo 5 dora"},
			{"another role", func() error { return s.PutMember(t.Context(), w.ID, bob.ID, core.RoleAdmin) }, "1 alice 2 key 3 bob 4 cleo 5 dora"},
			{"the key is revoked", func() error { return s.DeleteAPIKey(t.Context(), w.ID, "", key.ID) }, "1 alice 3 bob 4 cleo 5 dora"},
			{"bob is removed", func() error { return s.DeleteMember(t.Context(), w.ID, bob.ID) }, "1 alice 4 cleo 5 dora"},
			{"cleo is merged into bob", func() error { return s.MergeUsers(t.Context(), cleo.ID, bob.ID) }, "1 alice 4 cleo 5 dora"},
			{"bob is deleted", func() error { return s.DeleteUser(t.Context(), bob.ID) }, "1 alice 5 dora"},
			{"the workspace is deleted", func() error { return s.DeleteWorkspace(t.Context(), w.ID) }, ""},
		} {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			if got := keptIDs(t, s); got != step.want {
				t.Errorf("%s: %q remain, want %q", step.what, got, step.want)
			}
		}
		if err := s.KeepResult(t.Context(), core.KeptResult{ID: "5", Workspace: core.DefaultWorkspaceID, User: "usr_gone", ExpiresAt: time.Now().Add(time.Hour)}); core.CodeOf(err) != core.CodeForbidden {
			t.Errorf("for a deleted user: %v", err)
		}
	})
}

func TestAUsersOldestResultsAreDeletedBeyondTheQuota(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		people := members(t, s, "alice", "bob")
		alice, bob := people[0], people[1]
		keep(t, s, core.KeptResult{ID: "0 bob", Workspace: core.DefaultWorkspaceID, User: bob.ID, Text: "x"})
		large := strings.Repeat("x", maxKeptBytes/2)
		for _, id := range []string{"1", "2", "3"} {
			keep(t, s, core.KeptResult{ID: id, Workspace: core.DefaultWorkspaceID, User: alice.ID, Text: large})
			// Two results from the same millisecond have no defined order, so the first results become older.
			if err := s.db.Exec(t.Context(), "preparing the test", `UPDATE kept_results SET expires_at = expires_at - 1000`); err != nil {
				t.Fatal(err)
			}
		}
		if got := keptIDs(t, s); got != "0 bob 2 3" {
			t.Errorf("%q remain", got)
		}
		if err := s.KeepResult(t.Context(), core.KeptResult{ID: "4", Workspace: core.DefaultWorkspaceID, User: alice.ID, Text: large + large + "x"}); core.CodeOf(err) != core.CodePayloadTooLarge {
			t.Errorf("a result that is larger than the quota: %v", err)
		}
		if err := s.db.Exec(t.Context(), "preparing the test", `UPDATE kept_results SET expires_at = $1 WHERE id = '2'`, database.Millis(time.Now().Add(-time.Second))); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Purge(t.Context(), Retention{}); n != 1 || err != nil || keptIDs(t, s) != "0 bob 3" {
			t.Errorf("%d rows are purged, and %q remain, %v", n, keptIDs(t, s), err)
		}
	})
}
