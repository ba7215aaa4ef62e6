package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAnInstallationIsReadAsItWasStored(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		full := core.Installation{
			ID: "first", Workspace: core.DefaultWorkspaceID, Name: "files", Source: core.Source{Kind: core.SourceName, Ref: "@a/files", Registry: "main"},
			BundleName: "@a/files", Version: "1.2.3", TrustScore: 75, Manifest: json.RawMessage(`{"name":"files"}`), Dir: "/x",
			Env: map[string]core.Secret{"TOKEN": "s3cret"}, Running: true, InstalledAt: time.UnixMilli(1_800_000_000_123).UTC(),
		}
		far := core.Installation{
			Workspace: core.DefaultWorkspaceID, Name: "far", Source: core.Source{Kind: core.SourceURL, Ref: "https://x"},
			Remote: &core.Remote{URL: "https://x", Type: "sse", Auth: core.RemoteAuth{Type: "header", Name: "X-Key", Value: "v4lue", Token: "t0ken", ClientID: "c", Issuer: "https://i"},
				Headers: map[string]core.Secret{"X-A": "b"}},
			InstalledAt: time.UnixMilli(5).UTC(),
		}
		put(t, s, full, far)
		wantInstallations(t, s, far, full)

		if err := s.AddInstallation(t.Context(), full); core.CodeOf(err) != core.CodeAlreadyInstalled {
			t.Errorf("adding it twice: %v", err)
		}
		full.Running, full.Version, full.Files = false, "2.0.0", "f00d"
		changed, err := s.ChangeInstallation(t.Context(), full.Workspace, full.Name, func(in *core.Installation) error {
			in.Running, in.Version, in.Files = false, "2.0.0", "f00d"
			return nil
		})
		if err != nil || !reflect.DeepEqual(changed, full) {
			t.Errorf("changed to %+v, %v, want %+v", changed, err, full)
		}
		refused := errors.New("no")
		if _, err := s.ChangeInstallation(t.Context(), full.Workspace, full.Name, func(in *core.Installation) error {
			in.Version = "3"
			return refused
		}); !errors.Is(err, refused) {
			t.Errorf("a change that refuses: %v", err)
		}
		wantInstallations(t, s, far, full)
		if one, err := s.Installation(t.Context(), full.Workspace, full.Name); err != nil || !reflect.DeepEqual(one, full) {
			t.Errorf("read %+v, %v", one, err)
		}
		if err := s.DeleteInstallation(t.Context(), full.Workspace, full.Name, "another"); err != nil {
			t.Fatal(err)
		}
		wantInstallations(t, s, far, full)
		for range 2 {
			if err := s.DeleteInstallation(t.Context(), full.Workspace, full.Name, full.ID); err != nil {
				t.Fatal(err)
			}
			wantInstallations(t, s, far)
		}
		_, err = s.Installation(t.Context(), full.Workspace, full.Name)
		_, gone := s.ChangeInstallation(t.Context(), full.Workspace, full.Name, func(*core.Installation) error { return nil })
		wantCodes(t, core.CodeNotFound, map[string]error{"read": err, "changed": gone})
	})
}

func TestAnAppNeedsAWorkspaceThatExists(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		err := s.AddInstallation(t.Context(), core.Installation{Workspace: "ws_nowhere", Name: "x", Env: map[string]core.Secret{"K": "s3cret"}})
		wantError(t, err, "storing app x of ws_nowhere")
		if strings.Contains(err.Error(), "s3cret") {
			t.Error("the error shows a secret")
		}
	})
}

func TestTheDefaultWorkspaceIsTheOwnersFromTheFirstStart(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for range 2 {
			w, err := s.EnsureDefaultWorkspace(t.Context())
			if want := (core.Workspace{ID: "ws_default", Name: "Default", Role: core.RoleAdmin}); err != nil || w != want {
				t.Fatalf("got %+v, %v, want %+v", w, err, want)
			}
		}
		owner := core.Owner()
		owner.User.DisplayName = "Another name" // a change, so that it is written
		if u := provision(t, s, owner); u != owner.User {
			t.Errorf("the owner is %+v", u)
		}
		got, err := s.Workspaces(t.Context(), core.Owner().User)
		if err != nil || len(got) != 1 || got[0].ID != core.DefaultWorkspaceID {
			t.Fatalf("the owner's workspaces: %+v, %v", got, err)
		}
	})
}

func TestAUserIsCreatedOnceHoweverManyRequestsRace(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		id := core.Identity{Issuer: "https://idp", Subject: "alice", User: core.User{Email: "alice@x.y", DisplayName: "Alice"}}
		users := make([]core.User, 20)
		var wg sync.WaitGroup
		for i := range users {
			wg.Go(func() {
				var err error
				if users[i], err = s.Provision(t.Context(), id, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, u := range users {
			if u != users[0] {
				t.Fatalf("two users for one identity: %+v and %+v", u, users[0])
			}
		}
		got, err := s.Workspaces(t.Context(), users[0])
		if err != nil || len(got) != 1 || got[0].Name != "Alice" || got[0].Role != core.RoleAdmin || !core.ValidWorkspaceID(got[0].ID) {
			t.Fatalf("want one personal workspace, got %+v, %v", got, err)
		}
	})
}

func TestTheSameSubjectOfAnotherIssuerIsAnotherUser(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		a := provision(t, s, core.Identity{Issuer: "https://a", Subject: "x"})
		b := provision(t, s, core.Identity{Issuer: "https://b", Subject: "x"})
		if a.ID == b.ID {
			t.Fatal("got one user for two issuers, want two")
		}
		for _, id := range []core.Identity{{Issuer: "https://a"}, {Subject: "x"}} {
			if _, err := s.Provision(t.Context(), id, nil); err == nil {
				t.Errorf("%+v was provisioned", id)
			}
		}
	})
}

func TestAUserIsUpdatedOnEachLogin(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		id := core.Identity{Issuer: "https://idp", Subject: "a", User: core.User{Email: "old@x.y", DisplayName: "Old", OrgRole: core.RoleAdmin}}
		first := provision(t, s, id)
		id.User = core.User{DisplayName: "New"} // a token without an email and without a role
		second := provision(t, s, id)
		want := core.User{ID: first.ID, Email: "old@x.y", DisplayName: "New", OrgRole: core.RoleMember}
		if second != want {
			t.Fatalf("got %+v, want %+v", second, want)
		}
		if again := provision(t, s, id); again != want {
			t.Fatalf("got %+v, want %+v", again, want)
		}
	})
}

func TestAdminsOfTheOrganizationAreAdminsOfTheDefaultWorkspace(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		cases := []struct {
			name string
			role core.Role
			want string
		}{
			{"an owner", core.RoleOwner, "ws_default:admin personal:admin"},
			{"an admin", core.RoleAdmin, "ws_default:admin personal:admin"},
			{"a member", core.RoleMember, "personal:admin"},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				u := provision(t, s, core.Identity{Issuer: "https://idp", Subject: c.name, User: core.User{OrgRole: c.role}})
				if got := workspaces(t, s, u); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
		t.Run("a member who was added, changed and removed", func(t *testing.T) {
			u := provision(t, s, core.Identity{Issuer: "https://idp", Subject: "a member"})
			for _, role := range []core.Role{core.RoleMember, core.RoleAdmin} {
				if err := s.PutMember(t.Context(), core.DefaultWorkspaceID, u.ID, role); err != nil {
					t.Fatal(err)
				}
				if got, err := s.Member(t.Context(), u.ID, core.DefaultWorkspaceID); err != nil || got != role {
					t.Fatalf("got %q, %v", got, err)
				}
				if got, want := workspaces(t, s, u), "ws_default:"+string(role)+" personal:admin"; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			if err := s.DeleteMember(t.Context(), core.DefaultWorkspaceID, u.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Member(t.Context(), u.ID, core.DefaultWorkspaceID); core.CodeOf(err) != core.CodeWorkspaceDenied {
				t.Errorf("after removal: %v", err)
			}
			if got := workspaces(t, s, u); got != "personal:admin" {
				t.Errorf("after removal: %q", got)
			}
		})
		t.Run("a role that does not exist is refused", func(t *testing.T) {
			u := provision(t, s, core.Identity{Issuer: "https://idp", Subject: "z"})
			if err := s.PutMember(t.Context(), core.DefaultWorkspaceID, u.ID, "king"); err == nil {
				t.Error("a member with the role king was stored")
			}
		})
	})
}

func TestALoginIsValidUntilLogoutOrExpiry(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		u := provision(t, s, core.Identity{Issuer: "https://idp", Subject: "a", User: core.User{OrgRole: core.RoleMember}})
		id := core.Identity{Issuer: "https://idp", Subject: "a", User: u}
		expires := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
		for _, c := range []core.Cookie{
			{Hash: "live", Identity: id, KeyPrint: "k", ExpiresAt: expires},
			{Hash: "ended", Identity: id, ExpiresAt: expires},
			{Hash: "expired", Identity: id, ExpiresAt: time.Now()},
		} {
			if err := s.PutCookie(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		var announced []string
		s.WatchMembers(func(user string) { announced = append(announced, user) })
		for range 2 {
			if err := s.DeleteCookie(t.Context(), "ended"); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(announced, []string{id.User.ID}) {
			t.Errorf("announced %q", announced)
		}
		got, err := s.Cookie(t.Context(), "live")
		if want := (core.Cookie{Hash: "live", Identity: id, KeyPrint: "k", ExpiresAt: expires}); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for _, hash := range []string{"ended", "expired", "never"} {
			if _, err := s.Cookie(t.Context(), hash); core.CodeOf(err) != core.CodeNotFound {
				t.Errorf("%s: %v", hash, err)
			}
		}
		if err := s.PutCookie(t.Context(), core.Cookie{Hash: "next", Identity: id, ExpiresAt: expires}); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := s.db.ReadPool().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM cookies`).Scan(&left); err != nil || left != 2 {
			t.Errorf("%d cookies are kept (%v), want the expired one gone", left, err)
		}
	})
}

func TestALoginShowsTheCurrentUser(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		id := core.Identity{Issuer: "https://idp", Subject: "a", User: core.User{OrgRole: core.RoleAdmin}}
		id.User = provision(t, s, id)
		if err := s.PutCookie(t.Context(), core.Cookie{Hash: "h", Identity: id, ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		id.User.OrgRole = core.RoleMember
		provision(t, s, id)
		if got, err := s.Cookie(t.Context(), "h"); err != nil || got.Identity.User.OrgRole != core.RoleMember {
			t.Fatalf("got %+v, %v: a demotion did not reach the login", got, err)
		}
	})
}

func put(t *testing.T, s *Store, all ...core.Installation) {
	t.Helper()
	for _, in := range all {
		if err := s.AddInstallation(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
}

func wantInstallations(t *testing.T, s *Store, want ...core.Installation) {
	t.Helper()
	got, err := s.Installations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func provision(t *testing.T, s *Store, id core.Identity, sameAs ...string) core.User {
	t.Helper()
	u, err := s.Provision(t.Context(), id, sameAs)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// workspaces returns a user's workspaces as id:role, with "personal" in place of ids other than the default one.
func workspaces(t *testing.T, s *Store, u core.User) string {
	t.Helper()
	all, err := s.Workspaces(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, w := range all {
		if w.ID != core.DefaultWorkspaceID {
			w.ID = "personal"
		}
		parts = append(parts, fmt.Sprintf("%s:%s", w.ID, w.Role))
	}
	return strings.Join(parts, " ")
}

func TestSettingsAreFoundByPrefix(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for _, name := range []string{"a.x", "a.y", "a", "ab", "A.x", "é.1"} {
			if err := s.PutSetting(t.Context(), name, "of "+name); err != nil {
				t.Fatal(err)
			}
		}
		for prefix, want := range map[string]string{"a.": "map[a.x:of a.x a.y:of a.y]", "é.": "map[é.1:of é.1]", "a%": "map[]"} {
			if got, err := s.Settings(t.Context(), prefix); err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s: %v (%v), want %s", prefix, got, err, want)
			}
		}
	})
}

func TestAPersonalWorkspaceHasALimitedNumberOfApps(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.quota.PersonalApps = 2
		alice := somebody(t, s, "alice")
		all, err := s.Workspaces(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		own := all[slices.IndexFunc(all, func(w core.Workspace) bool { return w.ID != core.DefaultWorkspaceID })].ID
		team, err := s.CreateWorkspace(t.Context(), "Team", alice.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			err := s.AddInstallation(t.Context(), core.Installation{Workspace: own, Name: name, InstalledAt: time.Now()})
			if name == "c" {
				wantCodes(t, core.CodeLimitReached, map[string]error{"a third": err})
			} else if err != nil {
				t.Fatal(err)
			}
			if err := s.AddInstallation(t.Context(), core.Installation{Workspace: team.ID, Name: name, InstalledAt: time.Now()}); err != nil {
				t.Errorf("in another workspace: %v", err)
			}
		}
		if in, err := s.Installations(t.Context()); err != nil || len(in) != 5 {
			t.Errorf("%d apps are stored (%v)", len(in), err)
		}
	})
}

func TestConcurrentRequestsStayWithinTheQuota(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.quota = Quota{APIKeys: 2, PersonalApps: 2, Conversations: 2}
		alice := somebody(t, s, "alice")
		all, err := s.Workspaces(t.Context(), alice)
		if err != nil {
			t.Fatal(err)
		}
		own := all[slices.IndexFunc(all, func(w core.Workspace) bool { return w.ID != core.DefaultWorkspaceID })].ID
		for what, add := range map[string]func(name string) error{
			"apps": func(name string) error {
				return s.AddInstallation(t.Context(), core.Installation{Workspace: own, Name: name, InstalledAt: time.Now()})
			},
			"keys": func(name string) error {
				_, err := s.CreateAPIKey(t.Context(), core.APIKey{Name: name, User: alice, Workspace: own, Role: core.RoleMember}, name)
				return err
			},
			"conversations": func(string) error {
				_, err := s.CreateConversation(t.Context(), core.Conversation{Workspace: own, Owner: alice.ID})
				return err
			},
		} {
			var adding sync.WaitGroup
			var added atomic.Int32
			for i := range 16 {
				adding.Go(func() {
					switch err := add(fmt.Sprint("n", i)); {
					case err == nil:
						added.Add(1)
					case core.CodeOf(err) != core.CodeLimitReached:
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			adding.Wait()
			if added.Load() != 2 {
				t.Errorf("%d %s were added, the quota is 2", added.Load(), what)
			}
		}
	})
}
