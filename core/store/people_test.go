package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func somebody(t *testing.T, s *Store, name string) core.User {
	t.Helper()
	return provision(t, s, core.Identity{Issuer: "https://idp", Subject: name, User: core.User{DisplayName: name, Email: name + "@x.y"}})
}

func wantCodes(t *testing.T, want core.Code, errs map[string]error) {
	t.Helper()
	for what, err := range errs {
		if got := core.CodeOf(err); err == nil || got != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
}

func TestAWorkspaceIsCreatedRenamedAndDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		alice := somebody(t, s, "alice")
		w, err := s.CreateWorkspace(t.Context(), "  Team ", alice.ID)
		if err != nil || w.Name != "Team" || w.Role != core.RoleAdmin || !core.ValidWorkspaceID(w.ID) {
			t.Fatalf("%+v, %v", w, err)
		}
		if err := s.RenameWorkspace(t.Context(), w.ID, "Crew"); err != nil {
			t.Fatal(err)
		}
		if mine, err := s.Workspaces(t.Context(), alice); err != nil || len(mine) != 2 || mine[1] != (core.Workspace{ID: w.ID, Name: "Crew", Role: core.RoleAdmin}) {
			t.Errorf("alice's: %+v, %v", mine, err)
		}
		all, err := s.AllWorkspaces(t.Context())
		if err != nil || len(all) != 3 || all[0].ID != core.DefaultWorkspaceID || all[1].Name != "Crew" || all[1].Members != 1 || all[2].PersonalOf != alice.ID {
			t.Errorf("all: %+v, %v", all, err)
		}
		c, err := s.CreateConversation(t.Context(), core.Conversation{Workspace: w.ID, Owner: alice.ID})
		if err != nil {
			t.Fatal(err)
		}
		ref := core.ConversationRef{Workspace: w.ID, Owner: alice.ID, ID: c.ID}
		grow(t, s, ref, []core.Message{said("user", "hi")}, core.Usage{Model: "m"})
		put(t, s, core.Installation{Workspace: w.ID, Name: "app"})
		err = s.DeleteWorkspace(t.Context(), w.ID)
		wantError(t, err, "1 apps are installed in workspace "+w.ID+"; uninstall them first")
		if err := s.DeleteInstallation(t.Context(), w.ID, "app", ""); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteWorkspace(t.Context(), w.ID); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"collections", "conversations", "messages", "words", "usage_records"} {
			var n int
			if err := s.db.ReadPool().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil || n != 0 {
				t.Errorf("%d rows in %s (%v)", n, table, err)
			}
		}
		wantCodes(t, core.CodeNotFound, map[string]error{
			"renaming the deleted workspace": s.RenameWorkspace(t.Context(), w.ID, "x"), "deleting it twice": s.DeleteWorkspace(t.Context(), w.ID),
			"joining the deleted workspace":        s.PutMember(t.Context(), w.ID, alice.ID, core.RoleMember),
			"leaving the deleted workspace":        s.DeleteMember(t.Context(), w.ID, alice.ID),
			"a workspace of an unknown user":       second(s.CreateWorkspace(t.Context(), "x", "usr_nobody")),
			"the members of the deleted workspace": second(s.Members(t.Context(), w.ID)),
			"adding an unknown user":               s.PutMember(t.Context(), core.DefaultWorkspaceID, "usr_nobody", core.RoleMember),
		})
		wantCodes(t, core.CodeForbidden, map[string]error{
			"deleting the default workspace":     s.DeleteWorkspace(t.Context(), core.DefaultWorkspaceID),
			"deleting a personal workspace":      s.DeleteWorkspace(t.Context(), all[2].ID),
			"leaving a personal workspace":       s.DeleteMember(t.Context(), all[2].ID, alice.ID),
			"a demotion in a personal workspace": s.PutMember(t.Context(), all[2].ID, alice.ID, core.RoleMember),
		})
		wantCodes(t, core.CodeInvalidInput, map[string]error{
			"an empty name": second(s.CreateWorkspace(t.Context(), " \t", alice.ID)), "a long name": s.RenameWorkspace(t.Context(), core.DefaultWorkspaceID, strings.Repeat("é", 101)),
			"an unknown role": s.PutMember(t.Context(), core.DefaultWorkspaceID, alice.ID, "king"), "an owner": s.PutMember(t.Context(), core.DefaultWorkspaceID, alice.ID, core.RoleOwner),
		})
	})
}

func second[T any](_ T, err error) error { return err }

func TestMembersAreListedWithTheirRoles(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		bob, alice := somebody(t, s, "bob"), somebody(t, s, "alice")
		w, err := s.CreateWorkspace(t.Context(), "Team", bob.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.PutMember(t.Context(), w.ID, alice.ID, core.RoleMember); err != nil {
			t.Fatal(err)
		}
		got, err := s.Members(t.Context(), w.ID)
		if err != nil || len(got) != 2 || got[0] != (core.Member{User: alice, Role: core.RoleMember}) || got[1] != (core.Member{User: bob, Role: core.RoleAdmin}) {
			t.Errorf("%+v, %v", got, err)
		}
		users, err := s.Users(t.Context())
		if err != nil || len(users) != 3 || users[0].User != core.Owner().User || users[1].User != alice || users[2].User != bob {
			t.Errorf("everybody: %+v, %v", users, err)
		}
	})
}

func TestARoleSetByAnAdminOverridesTheProvidersRole(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		alice := somebody(t, s, "alice")
		id := core.Identity{Issuer: "https://idp", Subject: "alice", User: alice}
		if err := s.PutCookie(t.Context(), core.Cookie{Hash: "h", Identity: id, ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if err := s.SetOrgRole(t.Context(), alice.ID, core.RoleAdmin); err != nil {
			t.Fatal(err)
		}
		for _, said := range []core.Role{core.RoleMember, core.RoleOwner, ""} {
			id.User.OrgRole, id.User.DisplayName = said, "as "+string(said)
			if u := provision(t, s, id); u.OrgRole != core.RoleAdmin || u.DisplayName != id.User.DisplayName {
				t.Errorf("the provider says %q: %+v", said, u)
			}
		}
		if c, err := s.Cookie(t.Context(), "h"); err != nil || c.Identity.User.OrgRole != core.RoleAdmin {
			t.Errorf("the login: %+v, %v", c.Identity.User, err)
		}
		if u, err := s.User(t.Context(), alice.ID); err != nil || u.OrgRole != core.RoleAdmin {
			t.Errorf("the user: %+v, %v", u, err)
		}
		if err := s.SetOrgRole(t.Context(), alice.ID, ""); err != nil {
			t.Fatal(err)
		}
		id.User.OrgRole = core.RoleOwner
		if u := provision(t, s, id); u.OrgRole != core.RoleOwner {
			t.Errorf("the role is up to the provider again: %+v", u)
		}
		wantCodes(t, core.CodeInvalidInput, map[string]error{"king": s.SetOrgRole(t.Context(), alice.ID, "king")})
		wantCodes(t, core.CodeForbidden, map[string]error{"the owner": s.SetOrgRole(t.Context(), core.Owner().User.ID, core.RoleMember)})
		wantCodes(t, core.CodeNotFound, map[string]error{"nobody": s.SetOrgRole(t.Context(), "usr_nobody", core.RoleAdmin), "asking for nobody": second(s.User(t.Context(), "usr_nobody"))})
	})
}

func TestADeletedUserReturnsAsANewUser(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		alice := somebody(t, s, "alice")
		mine, err := s.Workspaces(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []string{mine[0].ID, core.DefaultWorkspaceID} {
			if _, err := s.CreateConversation(t.Context(), core.Conversation{Workspace: w, Owner: alice.ID, Title: "a secret"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.PutCookie(t.Context(), core.Cookie{Hash: "h", Identity: core.Identity{User: alice}, ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		put(t, s, core.Installation{Workspace: mine[0].ID, Name: "app"})
		wantCodes(t, core.CodeForbidden, map[string]error{"with an app": s.DeleteUser(t.Context(), alice.ID), "the owner": s.DeleteUser(t.Context(), core.Owner().User.ID)})
		err = errors.Join(s.DeleteInstallation(t.Context(), mine[0].ID, "app", ""), s.DeleteUser(t.Context(), alice.ID))
		if err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeNotFound, map[string]error{"again": s.DeleteUser(t.Context(), alice.ID), "the login": second(s.Cookie(t.Context(), "h"))})
		var n int
		if err := s.db.ReadPool().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM words`).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d words remain (%v)", n, err)
		}
		if again := somebody(t, s, "alice"); again.ID == alice.ID {
			t.Error("the new user has the old user's id")
		}
	})
}
