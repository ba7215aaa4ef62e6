package access

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// callerOf authenticates a bearer for /v1 and puts it into a workspace.
func callerOf(t *testing.T, a *Access, bearer, workspace string) (core.Caller, error) {
	t.Helper()
	id, err := a.API(t.Context(), bearer, "")
	if err != nil {
		return core.Caller{}, err
	}
	return a.Caller(t.Context(), id, workspace)
}

// newKeyOf makes a key for an existing caller.
func newKeyOf(t *testing.T, a *Access, c core.Caller, k NewKey) (core.APIKey, string) {
	t.Helper()
	made, text, err := a.CreateKey(t.Context(), c, k)
	if err != nil {
		t.Fatal(err)
	}
	return made, text.Reveal()
}

// withAlice returns an Access with an adapter, and alice in her personal workspace.
func withAlice(t *testing.T) (*Access, *counted, core.Caller) {
	t.Helper()
	a, state := newAccess(t, testKey, newProvider("https://idp", "alice", "bob"))
	alice, err := callerOf(t, a, "token-of-alice", "")
	if err != nil {
		t.Fatal(err)
	}
	return a, state, alice
}

func TestAnAPIKeyActsAsItsUserInItsWorkspaceOnBothEndpoints(t *testing.T) {
	a, state, alice := withAlice(t)
	if err := state.SetOrgRole(t.Context(), alice.User.ID, core.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	a.MembersChanged(alice.User.ID)
	alice, err := callerOf(t, a, "token-of-alice", core.DefaultWorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	made, text := newKeyOf(t, a, alice, NewKey{Name: " ci ", Role: core.RoleMember})
	if made.Name != "ci" || !strings.HasPrefix(text, "rwk_") || len(text) < 50 {
		t.Errorf("%+v %q", made, text)
	}
	for name, authenticate := range map[string]func() (core.Identity, error){
		"/v1":  func() (core.Identity, error) { return a.API(t.Context(), text, "") },
		"/mcp": func() (core.Identity, error) { return a.MCP(t.Context(), text, "") },
	} {
		id, err := authenticate()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if id.User.ID != alice.User.ID || id.User.OrgRole != core.RoleMember || id.Subject != made.ID || id.Issuer != core.IssuerKey {
			t.Errorf("%s: %+v", name, id)
		}
		c, err := a.Caller(t.Context(), id, "")
		if err != nil || c.Workspace.ID != core.DefaultWorkspaceID || c.Workspace.Role != core.RoleMember {
			t.Errorf("%s: %+v %v", name, c.Workspace, err)
		}
	}
	listed, err := a.Keys(t.Context(), alice)
	if err != nil || len(listed) != 1 || listed[0].LastUsedAt.IsZero() {
		t.Errorf("%+v %v", listed, err)
	}
}

func TestAnAPIKeyIsLimitedToItsWorkspace(t *testing.T) {
	a, _, alice := withAlice(t)
	_, text := newKeyOf(t, a, alice, NewKey{Name: "k", Role: core.RoleAdmin})
	_, err := callerOf(t, a, text, core.DefaultWorkspaceID)
	want(t, "another workspace", string(core.CodeOf(err)), "workspace_access_denied")
	id, _ := a.API(t.Context(), text, "")
	list, err := a.Workspaces(t.Context(), id)
	if err != nil || len(list) != 1 || list[0].ID != alice.Workspace.ID || list[0].Role != core.RoleAdmin {
		t.Errorf("%+v %v", list, err)
	}
}

func TestAnAPIKeyHasAtMostTheRoleItsUserHas(t *testing.T) {
	a, state, _ := withAlice(t)
	bob, err := callerOf(t, a, "token-of-bob", "")
	if err != nil {
		t.Fatal(err)
	}
	put := func(role core.Role) {
		if err := state.PutMember(t.Context(), core.DefaultWorkspaceID, bob.User.ID, role); err != nil {
			t.Fatal(err)
		}
		a.MembersChanged(bob.User.ID)
	}
	put(core.RoleAdmin)
	admin, err := callerOf(t, a, "token-of-bob", core.DefaultWorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	_, text := newKeyOf(t, a, admin, NewKey{Name: "k", Role: core.RoleAdmin})
	put(core.RoleMember)
	c, err := callerOf(t, a, text, "")
	if err != nil || c.Workspace.Role != core.RoleMember {
		t.Errorf("after the user became a member: %+v %v", c.Workspace, err)
	}
	_, _, err = a.CreateKey(t.Context(), c, NewKey{Name: "k"})
	want(t, "a key made with a key", string(core.CodeOf(err)), "forbidden")
	member, _ := callerOf(t, a, "token-of-bob", core.DefaultWorkspaceID)
	_, _, err = a.CreateKey(t.Context(), member, NewKey{Name: "k", Role: core.RoleAdmin})
	want(t, "an admin key of a member", string(core.CodeOf(err)), "forbidden")
	if err := state.DeleteMember(t.Context(), core.DefaultWorkspaceID, bob.User.ID); err != nil {
		t.Fatal(err)
	}
	a.MembersChanged(bob.User.ID)
	_, err = callerOf(t, a, text, "")
	want(t, "after the user left", string(core.CodeOf(err)), "workspace_access_denied")
}

func TestARevokedOrExpiredAPIKeyIsRefusedAtOnce(t *testing.T) {
	a, _, alice := withAlice(t)
	key, text := newKeyOf(t, a, alice, NewKey{Name: "k"})
	ends := time.Now().Add(2 * time.Second)
	_, short := newKeyOf(t, a, alice, NewKey{Name: "short", ExpiresAt: ends})
	for _, bearer := range []string{text, short} {
		if _, err := a.API(t.Context(), bearer, ""); err != nil {
			t.Fatal(err)
		}
	}
	changed := make(chan string, 1)
	defer a.WatchRevocations(func(user string) { changed <- user })()
	bob, _ := callerOf(t, a, "token-of-bob", "")
	want(t, "revoked by another user", string(core.CodeOf(a.RevokeKey(t.Context(), bob, key.ID))), "not_found")
	if err := a.RevokeKey(t.Context(), alice, key.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "whose rights changed", <-changed, alice.User.ID)
	want(t, "revoked", outcome(a.API(t.Context(), text, "")), "unauthenticated")
	want(t, "revoked, on /mcp", outcome(a.MCP(t.Context(), text, "")), "unauthenticated")
	<-time.After(time.Until(ends) + 50*time.Millisecond)
	want(t, "expired", outcome(a.API(t.Context(), short, "")), "unauthenticated")
	want(t, "unknown", outcome(a.API(t.Context(), "rwk_unknown", "")), "unauthenticated")
}

func TestAnAPIKeyIsStoredAsAHashOnly(t *testing.T) {
	a, state, alice := withAlice(t)
	_, text := newKeyOf(t, a, alice, NewKey{Name: "k"})
	if _, err := state.APIKey(t.Context(), text); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("the text is a key of the table: %v", err)
	}
	if k, err := state.APIKey(t.Context(), fingerprintOf(text).String()); err != nil || k.User.ID != alice.User.ID {
		t.Errorf("%+v %v", k, err)
	}
}

func TestMostRequestsWithAnAPIKeyReadNoDatabase(t *testing.T) {
	a, state, alice := withAlice(t)
	_, text := newKeyOf(t, a, alice, NewKey{Name: "k"})
	if _, err := callerOf(t, a, text, ""); err != nil {
		t.Fatal(err)
	}
	state.fail.Store(true)
	if err := state.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := callerOf(t, a, text, ""); err != nil {
		t.Errorf("a second request: %v", err)
	}
}

func TestACallerIsValidUntilTheUserTheMembershipOrTheKeyIsGone(t *testing.T) {
	a, state, alice := withAlice(t)
	key, text := newKeyOf(t, a, alice, NewKey{Name: "k"})
	withKey, err := callerOf(t, a, text, "")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(c core.Caller) string {
		if _, err := a.Current(context.Background(), c); err != nil {
			return string(core.CodeOf(err))
		}
		return "valid"
	}
	want(t, "alice", valid(alice), "valid")
	want(t, "her key", valid(withKey), "valid")
	if err := a.RevokeKey(t.Context(), alice, key.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "her revoked key", valid(withKey), "unauthenticated")
	want(t, "alice without the key", valid(alice), "valid")
	if err := state.DeleteUser(t.Context(), alice.User.ID); err != nil {
		t.Fatal(err)
	}
	a.MembersChanged(alice.User.ID)
	want(t, "alice, deleted", valid(alice), "unauthenticated")
}
