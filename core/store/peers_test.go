package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

var _ event.Relay = (*Store)(nil)

// soon is how long a test waits for an event that must arrive. On an idle machine, an event takes at most 2 s.
const soon = time.Minute

// next returns the next value from a channel. It fails the test if no value arrives soon.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(soon):
		t.Fatalf("nothing arrived within %s", soon)
		panic("unreachable")
	}
}

// received returns a channel with the events that a store receives.
func received(t *testing.T, s *Store) <-chan core.Event {
	t.Helper()
	out := make(chan core.Event, 10_000)
	if s.cluster != nil {
		t.Cleanup(s.cluster.Subscribe(func(e core.Event) { out <- e }))
	}
	return out
}

func dataChanged(n int) core.Event {
	return core.Event{Name: core.EventDataChanged, Workspace: "ws_a", Data: core.DataChanged{Tool: fmt.Sprint(n)}}
}

func TestChangesAreSentOnlyToTheOtherServers(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	mine, theirs := a.Changes(t.Context()), b.Changes(t.Context())
	alice := somebody(t, a, "alice")
	team, err := a.CreateWorkspace(t.Context(), "Team", alice.ID)
	if err != nil {
		t.Fatal(err)
	}
	app := core.Installation{Workspace: core.DefaultWorkspaceID, Name: "app", Running: true}
	stop := func() error {
		_, err := a.ChangeInstallation(t.Context(), app.Workspace, app.Name, func(in *core.Installation) error { in.Running = false; return nil })
		return err
	}
	for _, c := range []struct {
		name string
		do   func() error
		want core.Change
	}{
		{"a workspace", func() error { return nil }, core.Change{Kind: core.ChangeMembers, Workspace: team.ID, Name: alice.ID}},
		{"an installed app", func() error { return a.AddInstallation(t.Context(), app) }, core.Change{Kind: core.ChangeApp, Workspace: app.Workspace, Name: "app"}},
		{"a stopped app", stop, core.Change{Kind: core.ChangeApp, Workspace: app.Workspace, Name: "app"}},
		{"a deleted app", func() error { return a.DeleteInstallation(t.Context(), app.Workspace, "app", "") }, core.Change{Kind: core.ChangeApp, Workspace: app.Workspace, Name: "app"}},
		{"a setting", func() error { return a.PutSetting(t.Context(), "model", "x") }, core.Change{Kind: core.ChangeSetting, Name: "model"}},
		{"a member", func() error { return a.PutMember(t.Context(), core.DefaultWorkspaceID, alice.ID, core.RoleMember) }, core.Change{Kind: core.ChangeMembers, Workspace: core.DefaultWorkspaceID, Name: alice.ID}},
		{"a removed member", func() error { return a.DeleteMember(t.Context(), core.DefaultWorkspaceID, alice.ID) }, core.Change{Kind: core.ChangeMembers, Workspace: core.DefaultWorkspaceID, Name: alice.ID}},
		{"a renamed workspace", func() error { return a.RenameWorkspace(t.Context(), team.ID, "Crew") }, core.Change{Kind: core.ChangeMembers, Workspace: team.ID}},
		{"a deleted workspace", func() error { return a.DeleteWorkspace(t.Context(), team.ID) }, core.Change{Kind: core.ChangeMembers, Workspace: team.ID}},
		{"a changed role", func() error { return a.SetOrgRole(t.Context(), alice.ID, core.RoleAdmin) }, core.Change{Kind: core.ChangeMembers, Name: alice.ID}},
		{"a deleted user", func() error { return a.DeleteUser(t.Context(), alice.ID) }, core.Change{Kind: core.ChangeMembers, Name: alice.ID}},
	} {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := next(t, theirs); got != c.want {
			t.Errorf("%s: received %+v, want %+v", c.name, got, c.want)
		}
	}
	if err := b.PutSetting(t.Context(), "last", "x"); err != nil {
		t.Fatal(err)
	}
	if got, want := next(t, mine), (core.Change{Kind: core.ChangeSetting, Name: "last"}); got != want {
		t.Errorf("the first server received %+v first, want %+v; a server should not receive its own changes", got, want)
	}
}

func TestAChangeIsPublishedOnceItCanBeRead(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	changes := b.Changes(t.Context())
	for i := range 50 {
		if err := a.PutSetting(t.Context(), "n", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		next(t, changes)
		if got, err := b.Setting(t.Context(), "n"); err != nil || got != fmt.Sprint(i) {
			t.Fatalf("after the notice: %q, %v, want %d", got, err, i)
		}
	}
}

func TestASlowReaderReceivesManyChangesOfOneThingOnce(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	slow, done := b.Changes(t.Context()), b.Changes(t.Context())
	for i := range 300 {
		if err := a.PutSetting(t.Context(), fmt.Sprint(i%3), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.PutSetting(t.Context(), "last", "x"); err != nil {
		t.Fatal(err)
	}
	for next(t, done).Name != "last" {
		continue
	}
	names := make(map[string]int)
	for name := ""; name != "last"; {
		name = next(t, slow).Name
		names[name]++
	}
	if len(names) != 4 || names["1"] > 2 {
		t.Errorf("received %v", names)
	}
}

func TestEventsOfOneServerReachTheOthersInOrderWhateverTheirSize(t *testing.T) {
	url := newDatabase(t)
	a, b, c := openURL(t, url), openURL(t, url), openURL(t, url)
	atA, atB, atC := received(t, a), received(t, b), received(t, c)
	big := core.Event{Name: core.EventBundleInstalled, Workspace: "ws_a", Data: core.BundleInstalled{Name: "n", UI: &core.UI{Icon: strings.Repeat("x", 100_000)}}}
	const n = 500
	for i := range n {
		a.Send(dataChanged(i))
	}
	a.Send(big)
	a.Send(core.Event{Name: core.EventDataChanged, Data: core.DataChanged{Tool: strings.Repeat("x", 1<<20)}}) // too large to be sent to another server
	a.Send(core.Event{Name: "last"})
	for name, at := range map[string]<-chan core.Event{"b": atB, "c": atC} {
		for i := range n {
			got := next(t, at)
			if want := dataChanged(i); got.Name != want.Name || got.Workspace != want.Workspace || string(got.Data.(json.RawMessage)) != asJSON(t, want.Data) {
				t.Fatalf("%s: event %d is %+v", name, i, got)
			}
		}
		if got := next(t, at); got.Name != big.Name || string(got.Data.(json.RawMessage)) != asJSON(t, big.Data) {
			t.Errorf("%s: the big event is %.100s", name, got.Data)
		}
		if got := next(t, at); got.Name != "last" {
			t.Errorf("%s: it was followed by %.100s", name, got.Data)
		}
	}
	if len(atA) != 0 {
		t.Errorf("the sender received %d of its own events", len(atA))
	}
}

func TestEventsAreWrittenBeforeTheStoreCloses(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	at := received(t, b)
	for i := range 300 {
		a.Send(dataChanged(i))
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		next(t, at)
	}
}

func TestAServerWhoseConnectionBreaksOpensAnother(t *testing.T) {
	url := newDatabase(t)
	a, b := openURL(t, url), openURL(t, url)
	changes := b.Changes(t.Context())
	listeners := `FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`
	if _, err := a.db.WritePool().ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) `+listeners); err != nil {
		t.Fatal(err)
	}
	if err := a.PutSetting(t.Context(), "x", "y"); err != nil {
		t.Fatal(err)
	}
	next(t, changes)
	testkit.Eventually(t, "both listen", func() (both bool) {
		if err := a.db.ReadPool().QueryRowContext(t.Context(), `SELECT COUNT(*) = 2 `+listeners).Scan(&both); err != nil {
			t.Fatal(err)
		}
		return both
	})
}

func TestAServerThatMissedNoticesReloadsEverything(t *testing.T) {
	url := newDatabase(t)
	a := openURL(t, url)
	changes := a.Changes(t.Context())
	db := rawURL(t, url)
	for range 2 { // first with no notices left, then with a gap
		if _, err := db.ExecContext(t.Context(), `UPDATE counters SET n = n + 5`); err != nil {
			t.Fatal(err)
		}
		if got := next(t, changes); got != (core.Change{Kind: core.ChangeAll}) {
			t.Errorf("received %+v", got)
		}
	}
	if _, err := db.ExecContext(t.Context(), `WITH c AS (UPDATE counters SET n = n + 3 RETURNING n)
		INSERT INTO notices SELECT n, 'b', 'setting', '', 'late', '', 0 FROM c`); err != nil {
		t.Fatal(err)
	}
	got := []core.Change{next(t, changes), next(t, changes)}
	if !slices.Equal(got, []core.Change{{Kind: core.ChangeAll}, {Kind: core.ChangeSetting, Name: "late"}}) {
		t.Errorf("received %+v", got)
	}
}

func TestAfterARestartOfPostgresServersReceiveNoticesAgain(t *testing.T) {
	server := testenv.StartPostgres(t)
	a, b := openURL(t, server.URL), openURL(t, server.URL)
	at := received(t, b)
	server.Kill()
	a.Send(dataChanged(1)) // waits until the database is available again
	server.Start()
	deadline := time.After(soon)
	select {
	case got := <-at:
		if got.Name != core.EventDataChanged {
			t.Errorf("received %+v", got)
		}
	case <-deadline:
		t.Fatal("the event that was sent while PostgreSQL was down never came")
	}
	changes := b.Changes(t.Context())
	if err := a.PutSetting(t.Context(), "x", "y"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, changes); got.Name != "x" {
		t.Errorf("received %+v", got)
	}
}

func TestWithSQLiteNoChangesAreSent(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	changes, at := s.Changes(ctx), received(t, s)
	s.Send(dataChanged(1))
	if err := s.PutSetting(t.Context(), "x", "y"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if c, open := <-changes; open || len(at) != 0 || s.Shared() {
		t.Errorf("received the change %+v and %d events", c, len(at))
	}
}
