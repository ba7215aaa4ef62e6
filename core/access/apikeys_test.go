package access

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/people"
)

// callerOf authenticates a bearer for /v1 and returns it as a caller in a workspace.
func callerOf(t *testing.T, a *Access, bearer, workspace string) (core.Caller, error) {
	t.Helper()
	id, err := a.API(t.Context(), bearer, "")
	if err != nil {
		return core.Caller{}, err
	}
	return a.Caller(t.Context(), id, workspace)
}

// newKeyOf creates a key for an existing caller.
func newKeyOf(t *testing.T, d *people.Directory, c core.Caller, k people.NewKey) (core.APIKey, string) {
	t.Helper()
	made, text, err := d.CreateKey(t.Context(), c, k)
	if err != nil {
		t.Fatal(err)
	}
	return made, text.Reveal()
}

// directory returns a people.Directory, which creates and revokes keys in a store.
func directory(state *counted) *people.Directory {
	return people.New(state, everyProvider{}, hclog.NewNullLogger())
}

// withAlice returns an Access with an adapter, and alice as a caller in her personal workspace.
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
	alice, err := callerOf(t, a, "token-of-alice", core.DefaultWorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	made, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: " ci ", Role: core.RoleMember})
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
	listed, err := directory(state).Keys(t.Context(), alice)
	if err != nil || len(listed) != 1 || listed[0].LastUsedAt.IsZero() {
		t.Errorf("%+v %v", listed, err)
	}
}

func TestAnAPIKeyIsLimitedToItsWorkspace(t *testing.T) {
	a, state, alice := withAlice(t)
	_, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: "k", Role: core.RoleAdmin})
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
	}
	put(core.RoleAdmin)
	admin, err := callerOf(t, a, "token-of-bob", core.DefaultWorkspaceID)
	if err != nil {
		t.Fatal(err)
	}
	_, text := newKeyOf(t, directory(state), admin, people.NewKey{Name: "k", Role: core.RoleAdmin})
	put(core.RoleMember)
	c, err := callerOf(t, a, text, "")
	if err != nil || c.Workspace.Role != core.RoleMember {
		t.Errorf("after the user became a member: %+v %v", c.Workspace, err)
	}
	err = people.MakeKey().Check(c, func(string) bool { return true }, "this")
	want(t, "a key created with a key", string(core.CodeOf(err)), "forbidden")
	member, _ := callerOf(t, a, "token-of-bob", core.DefaultWorkspaceID)
	_, _, err = directory(state).CreateKey(t.Context(), member, people.NewKey{Name: "k", Role: core.RoleAdmin})
	want(t, "an admin key created by a member", string(core.CodeOf(err)), "forbidden")
	if err := state.DeleteMember(t.Context(), core.DefaultWorkspaceID, bob.User.ID); err != nil {
		t.Fatal(err)
	}
	_, err = callerOf(t, a, text, "")
	want(t, "after the user left", string(core.CodeOf(err)), "workspace_access_denied")
}

func TestARevokedOrExpiredAPIKeyIsRefusedImmediately(t *testing.T) {
	a, state, alice := withAlice(t)
	key, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: "k"})
	ends := time.Now().Add(5 * time.Second)
	_, short := newKeyOf(t, directory(state), alice, people.NewKey{Name: "short", ExpiresAt: ends})
	for _, bearer := range []string{text, short} {
		if _, err := a.API(t.Context(), bearer, ""); err != nil {
			t.Fatal(err)
		}
	}
	changed := make(chan string, 1)
	defer a.WatchRevocations(func(user string) { changed <- user })()
	bob, _ := callerOf(t, a, "token-of-bob", "")
	want(t, "revoked by another user", string(core.CodeOf(directory(state).RevokeKey(t.Context(), bob, key.ID))), "not_found")
	if err := directory(state).RevokeKey(t.Context(), alice, key.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "users whose rights changed", <-changed, alice.User.ID)
	want(t, "revoked", outcome(a.API(t.Context(), text, "")), "unauthenticated")
	want(t, "revoked, on /mcp", outcome(a.MCP(t.Context(), text, "")), "unauthenticated")
	<-time.After(time.Until(ends) + 50*time.Millisecond)
	want(t, "expired", outcome(a.API(t.Context(), short, "")), "unauthenticated")
	want(t, "unknown", outcome(a.API(t.Context(), "rwk_unknown", "")), "unauthenticated")
}

func TestAnAPIKeyIsStoredAsAHashOnly(t *testing.T) {
	_, state, alice := withAlice(t)
	_, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: "k"})
	if _, err := state.APIKey(t.Context(), text); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("the store contains the key in plain text: %v", err)
	}
	if k, err := state.APIKey(t.Context(), fingerprintOf(text).String()); err != nil || k.User.ID != alice.User.ID {
		t.Errorf("%+v %v", k, err)
	}
}

func TestMostRequestsWithAnAPIKeyDoNotAccessTheDatabase(t *testing.T) {
	a, state, alice := withAlice(t)
	_, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: "k"})
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
	key, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: "k"})
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
	if err := directory(state).RevokeKey(t.Context(), alice, key.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "her revoked key", valid(withKey), "unauthenticated")
	want(t, "alice without the key", valid(alice), "valid")
	if err := state.DeleteUser(t.Context(), alice.User.ID); err != nil {
		t.Fatal(err)
	}
	want(t, "alice, deleted", valid(alice), "unauthenticated")
}

func TestAKeyIsRefusedWhileItsCreatorsProviderIsNotConfigured(t *testing.T) {
	a, state, alice := withAlice(t)
	_, text := newKeyOf(t, directory(state), alice, people.NewKey{Name: "ci", Role: core.RoleMember})
	for _, step := range []struct {
		issuer string
		valid  bool
	}{{"https://idp", true}, {"https://other", false}, {"https://idp", true}} {
		a.SetProviders(only(newProvider(step.issuer, "alice")), nil)
		if _, err := callerOf(t, a, text, ""); (err == nil) != step.valid || err != nil && core.CodeOf(err) != core.CodeUnauthenticated {
			t.Errorf("with the provider %s: %v", step.issuer, err)
		}
	}
}

func TestAnAPIKeyHasItsOrganizationRoleOnlyWhileItsUserDoes(t *testing.T) {
	a, state, alice := withAlice(t)
	role := func(text string) core.Role {
		t.Helper()
		c, err := callerOf(t, a, text, "")
		if err != nil {
			t.Fatal(err)
		}
		now, err := a.Current(t.Context(), c)
		if err != nil || now.User.OrgRole != c.User.OrgRole {
			t.Errorf("reread, it is %s (%v), want %s", now.User.OrgRole, err, c.User.OrgRole)
		}
		return c.User.OrgRole
	}
	d := directory(state)
	if _, _, err := d.CreateKey(t.Context(), alice, people.NewKey{Name: "k", OrgRole: core.RoleAdmin}); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member created a key for the organization: %v", err)
	}
	if err := state.SetOrgRole(t.Context(), alice.User.ID, core.RoleOwner); err != nil {
		t.Fatal(err)
	}
	alice, err := callerOf(t, a, "token-of-alice", alice.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []people.NewKey{{Name: "k", OrgRole: core.RoleOwner}, {Name: "k", OrgRole: "boss"}, {Name: "k", OrgRole: core.RoleAdmin, View: "support"}} {
		if _, _, err := d.CreateKey(t.Context(), alice, wrong); core.CodeOf(err) != core.CodeBadRequest {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	_, plain := newKeyOf(t, d, alice, people.NewKey{Name: "plain"})
	_, admin := newKeyOf(t, d, alice, people.NewKey{Name: "admin", OrgRole: core.RoleAdmin})
	if got := role(plain); got != core.RoleMember {
		t.Errorf("a key that states no role has %s", got)
	}
	if got := role(admin); got != core.RoleAdmin {
		t.Errorf("a key that states admin has %s", got)
	}
	if err := state.SetOrgRole(t.Context(), alice.User.ID, core.RoleMember); err != nil {
		t.Fatal(err)
	}
	if got := role(admin); got != core.RoleMember {
		t.Errorf("a former admin's key has %s", got)
	}
}
