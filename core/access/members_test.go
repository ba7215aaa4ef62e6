package access

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

func TestAUserHasTheWorkspacesOfTheirMemberships(t *testing.T) {
	p := newProvider("https://idp", "member", "added")
	admin := p.identity("admin")
	admin.OrgRole = "admin"
	p.tokens["token-of-admin"] = admin
	a, state := newAccess(t, testKey, p)
	added, err := a.MCP(t.Context(), "token-of-added", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := state.PutMember(t.Context(), core.DefaultWorkspaceID, added.User.ID, core.RoleMember); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ who, bearer, first, inDefault string }{
		{"the holder of the instance key", testKey, "ws_default:admin", "admin"},
		{"an admin of the organization", "token-of-admin", "ws_default:admin", "admin"},
		{"a member of the organization", "token-of-member", "personal:admin", "workspace_access_denied"},
		{"a member who was added", "token-of-added", "ws_default:member", "member"},
	}
	for _, c := range cases {
		t.Run(c.who, func(t *testing.T) {
			id, err := a.API(t.Context(), c.bearer, "")
			if err != nil {
				t.Fatal(err)
			}
			caller, err := a.Caller(t.Context(), id, "")
			if err != nil {
				t.Fatal(err)
			}
			first := caller.Workspace
			if first.ID != core.DefaultWorkspaceID {
				first.ID = "personal"
			}
			want(t, "without a workspace id", first.ID+":"+string(first.Role), c.first)
			if caller.Identity != id {
				t.Error("the caller is a different user")
			}
			caller, err = a.Caller(t.Context(), id, core.DefaultWorkspaceID)
			got := string(caller.Workspace.Role)
			if err != nil {
				got = string(core.CodeOf(err))
			}
			want(t, "in the default workspace", got, c.inDefault)
		})
	}
}

func TestAnotherUsersWorkspaceLooksLikeAnUnknownOne(t *testing.T) {
	p := newProvider("https://idp", "alice", "bob")
	a, _ := newAccess(t, "", p)
	alice, bob := identity(t, a, "alice"), identity(t, a, "bob")
	bobs, err := a.Workspaces(t.Context(), bob)
	if err != nil || len(bobs) != 1 {
		t.Fatalf("got %+v, %v", bobs, err)
	}
	_, foreign := a.Caller(t.Context(), alice, bobs[0].ID)
	_, missing := a.Caller(t.Context(), alice, "ws_nowhere")
	want(t, "foreign", string(core.CodeOf(foreign)), "workspace_access_denied")
	if foreign.Error() != missing.Error() || strings.Contains(foreign.Error(), bobs[0].ID) {
		t.Errorf("%q must not reveal more than %q", foreign, missing)
	}
}

func TestTheSteadyStateCallsNeitherTheAdapterNorTheDatabase(t *testing.T) {
	p := newProvider("https://idp", "alice")
	a, state := newAccess(t, testKey, p)
	call := func() {
		for _, bearer := range []string{"token-of-alice", testKey} {
			id, err := a.API(t.Context(), bearer, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Caller(t.Context(), id, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	call()
	asked, provisioned, looked := p.calls.Load(), state.provisions.Load(), state.workspaces.Load()
	for range 100 {
		call()
	}
	if p.calls.Load() != asked || state.provisions.Load() != provisioned || state.workspaces.Load() != looked {
		t.Errorf("after 100 more calls: adapter %d -> %d, users %d -> %d, workspaces %d -> %d", asked, p.calls.Load(),
			provisioned, state.provisions.Load(), looked, state.workspaces.Load())
	}
}

func TestAMembershipChangeAppliesImmediately(t *testing.T) {
	a, state := newAccess(t, "", newProvider("https://idp", "alice"))
	alice := identity(t, a, "alice")
	_, err := a.Caller(t.Context(), alice, core.DefaultWorkspaceID)
	want(t, "before", string(core.CodeOf(err)), "workspace_access_denied")
	for range 2 {
		if err := state.PutMember(t.Context(), core.DefaultWorkspaceID, alice.User.ID, core.RoleMember); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Caller(t.Context(), alice, core.DefaultWorkspaceID); err != nil {
			t.Errorf("added: %v", err)
		}
		if err := state.DeleteMember(t.Context(), core.DefaultWorkspaceID, alice.User.ID); err != nil {
			t.Fatal(err)
		}
		_, err = a.Caller(t.Context(), alice, core.DefaultWorkspaceID)
		want(t, "removed", string(core.CodeOf(err)), "workspace_access_denied")
	}
}

// slow is a Users with slow lookups, so that a change can happen during one.
type slow struct {
	memory
	wait chan struct{}
	list []core.Workspace
}

func (s *slow) Workspaces(context.Context, core.User) ([]core.Workspace, error) {
	list := s.list
	<-s.wait
	return list, nil
}

func TestALookupThatStartedBeforeAChangeIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := &slow{wait: make(chan struct{}), list: []core.Workspace{{ID: "ws_a"}}}
		a := New(Options{Users: users})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = a.Workspaces(t.Context(), core.Owner())
		}()
		synctest.Wait()
		users.list = nil
		a.MembersChanged(core.Owner().User.ID)
		close(users.wait)
		<-done
		if _, err := a.Caller(t.Context(), core.Owner(), "ws_a"); core.CodeOf(err) != core.CodeWorkspaceDenied {
			t.Errorf("a membership from before the change was cached: %v", err)
		}
	})
}

func TestAChangeOnAnotherReplicaIsSeenAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := &slow{wait: make(chan struct{}), list: []core.Workspace{{ID: "ws_a"}}}
		close(users.wait)
		a := New(Options{Users: users})
		if _, err := a.Caller(t.Context(), core.Owner(), "ws_a"); err != nil {
			t.Fatal(err)
		}
		users.list = nil
		<-time.After(membersLife)
		if _, err := a.Caller(t.Context(), core.Owner(), "ws_a"); core.CodeOf(err) != core.CodeWorkspaceDenied {
			t.Errorf("got %v", err)
		}
	})
}

func TestADatabaseThatCannotBeReadIsReportedAsUnavailable(t *testing.T) {
	a, state := newAccess(t, testKey, nil)
	state.fail.Store(true)
	_, err := a.Caller(t.Context(), core.Owner(), "")
	want(t, "caller", string(core.CodeOf(err)), "unavailable")
	_, err = a.Workspaces(t.Context(), core.Owner())
	want(t, "workspaces", string(core.CodeOf(err)), "unavailable")
}

func identity(t *testing.T, a *Access, subject string) core.Identity {
	t.Helper()
	id, err := a.MCP(t.Context(), "token-of-"+subject, "")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnOrganizationRoleAppliesImmediately(t *testing.T) {
	p := newProvider("https://idp", "alice", "bob")
	a, state := newAccess(t, "", p)
	alice := identity(t, a, "alice")
	identity(t, a, "bob")
	for _, role := range []core.Role{core.RoleAdmin, core.RoleMember} {
		if err := state.SetOrgRole(t.Context(), alice.User.ID, role); err != nil {
			t.Fatal(err)
		}
		want(t, "alice's role", string(identity(t, a, "alice").User.OrgRole), string(role))
	}
	calls := p.calls.Load()
	identity(t, a, "bob")
	if p.calls.Load() != calls {
		t.Error("bob's token was dropped together with alice's")
	}
}

func TestADeletedUserReturnsAsANewUser(t *testing.T) {
	p := newProvider("https://idp", "alice")
	a, state := newAccess(t, "", p)
	before := identity(t, a, "alice")
	if err := state.DeleteUser(t.Context(), before.User.ID); err != nil {
		t.Fatal(err)
	}
	after := identity(t, a, "alice")
	if list, err := a.Workspaces(t.Context(), after); after.User.ID == before.User.ID || err != nil || len(list) != 1 {
		t.Errorf("%+v returned with %+v, %v", after.User, list, err)
	}
}

func TestAnAnswerFromBeforeAChangeIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider("https://idp", "alice")
		p.block = make(chan struct{})
		a := New(Options{Providers: only(p), Users: memory{}})
		late := make(chan string, 1)
		go func() { late <- outcome(a.MCP(t.Context(), "token-of-alice", "")) }()
		synctest.Wait()
		a.MembersChanged("usr_alice")
		close(p.block)
		want(t, "a request from before the change", <-late, "alice")
		calls := p.calls.Load()
		want(t, "a request after the change", outcome(a.MCP(t.Context(), "token-of-alice", "")), "alice")
		if p.calls.Load() == calls {
			t.Error("the answer from before the change was cached")
		}
	})
}
