package access

import (
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func enrolled(t *testing.T, rules Enrollment, subjects ...string) (*Access, *counted) {
	t.Helper()
	state := openState(t)
	return New(Options{
		Providers: enrolling(rules, subjects...), Audiences: []string{"https://base"}, Users: state, Cookies: state, Keys: state, Enroller: state,
	}), state
}

// enrolling returns a provider with enrollment rules.
func enrolling(rules Enrollment, subjects ...string) []Provider {
	providers := only(newProvider("https://idp", subjects...))
	providers[0].Enrollment = rules
	return providers
}

func TestAuthAdminsMatchesAdminsByEmailOrSubject(t *testing.T) {
	a, state := enrolled(t, Enrollment{Admins: []string{"alice@x.y", "bob"}, FirstAdmin: true}, "alice", "bob", "carol")
	for subject, want := range map[string]core.Role{"carol": core.RoleMember, "alice": core.RoleAdmin, "bob": core.RoleAdmin} {
		if id := identity(t, a, subject); id.User.OrgRole != want {
			t.Errorf("%s is %s, want %s", subject, id.User.OrgRole, want)
		}
	}
	alice := identity(t, a, "alice")
	if err := state.SetOrgRole(t.Context(), alice.User.ID, core.RoleMember); err != nil {
		t.Fatal(err)
	}
	if id := identity(t, a, "alice"); id.User.OrgRole != core.RoleAdmin {
		t.Errorf("a role assigned on the server overrode that of an admin in the configuration: %s", id.User.OrgRole)
	}
}

func TestWithoutAuthAdminsOnlyTheFirstUserBecomesAdmin(t *testing.T) {
	a, state := enrolled(t, Enrollment{FirstAdmin: true}, "alice", "bob")
	alice, bob := identity(t, a, "alice"), identity(t, a, "bob")
	if alice.User.OrgRole != core.RoleAdmin || bob.User.OrgRole != core.RoleMember {
		t.Errorf("alice is %s, bob is %s", alice.User.OrgRole, bob.User.OrgRole)
	}
	if err := state.DeleteUser(t.Context(), alice.User.ID); err != nil {
		t.Fatal(err)
	}
	a.SetProviders(enrolling(Enrollment{FirstAdmin: true}, "bob"), []string{"https://base"})
	if id := identity(t, a, "bob"); id.User.OrgRole != core.RoleMember {
		t.Error("a second user became the first admin")
	}
}

func TestTheFirstUserIsNotAnAdminIfThereIsAnAPIKey(t *testing.T) {
	a, _ := enrolled(t, Enrollment{}, "alice")
	if id := identity(t, a, "alice"); id.User.OrgRole != core.RoleMember {
		t.Errorf("alice is %s", id.User.OrgRole)
	}
}

func TestUsersJoinTheWorkspaceInAuthJoinOnce(t *testing.T) {
	rules := Enrollment{Workspace: core.DefaultWorkspaceID, Role: core.RoleMember}
	a, state := enrolled(t, rules, "alice")
	c, err := a.Caller(t.Context(), identity(t, a, "alice"), "")
	if err != nil || c.Workspace.ID != core.DefaultWorkspaceID || c.Workspace.Role != core.RoleMember {
		t.Fatalf("%+v %v", c.Workspace, err)
	}
	if err := state.DeleteMember(t.Context(), core.DefaultWorkspaceID, c.User.ID); err != nil {
		t.Fatal(err)
	}
	a.SetProviders(enrolling(rules, "alice"), []string{"https://base"})
	_, err = a.Caller(t.Context(), identity(t, a, "alice"), core.DefaultWorkspaceID)
	want(t, "after the user was removed", string(core.CodeOf(err)), "workspace_access_denied")
}

func TestMembershipsFollowAUsersGroups(t *testing.T) {
	a, state := enrolled(t, Enrollment{}, "alice")
	p := newProvider("https://idp", "dave")
	rules := Enrollment{Groups: []GroupRole{
		{"eng", core.DefaultWorkspaceID, core.RoleMember}, {"leads", core.DefaultWorkspaceID, core.RoleAdmin}, {"eng", "ws_none", core.RoleMember},
	}}
	seen := func(rules Enrollment, groups ...string) string {
		t.Helper()
		dave := p.identity("dave")
		dave.Groups = groups
		p.set(func(p *provider) { p.tokens["token-of-dave"] = dave })
		a.SetProviders([]Provider{{Adapter: p, Enrollment: rules}}, []string{"https://base"})
		c, err := a.Caller(t.Context(), identity(t, a, "dave"), core.DefaultWorkspaceID)
		if err != nil {
			return string(core.CodeOf(err))
		}
		return string(c.Workspace.Role)
	}
	dave := identityOf(t, a, p, "dave")
	for i, step := range []struct {
		rules  Enrollment
		groups []string
		want   string
	}{
		{rules, nil, "workspace_access_denied"},
		{rules, []string{"staff", "eng"}, "member"},
		{rules, []string{"eng", "leads"}, "admin"},
		{rules, []string{"leads", "eng"}, "admin"},
		{rules, []string{"eng"}, "member"},
		{rules, []string{"Eng"}, "workspace_access_denied"},
		{rules, []string{"leads"}, "admin"},
		{Enrollment{}, []string{"leads"}, "workspace_access_denied"}, // the rules were removed
	} {
		if got := seen(step.rules, step.groups...); got != step.want {
			t.Errorf("step %d, in %v: %s, want %s", i, step.groups, got, step.want)
		}
	}
	if err := state.PutMember(t.Context(), core.DefaultWorkspaceID, dave.User.ID, core.RoleMember); err != nil {
		t.Fatal(err)
	}
	for _, groups := range [][]string{{"leads"}, {}} {
		if got := seen(rules, groups...); got != "member" {
			t.Errorf("a member added by hand, in %v: %s", groups, got)
		}
	}
}

func TestAUsersGroupsAreThoseLastReportedByTheProvider(t *testing.T) {
	a, state := enrolled(t, Enrollment{}, "alice")
	p := newProvider("https://idp", "dave")
	id := identityOf(t, a, p, "dave")
	c, err := a.Caller(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		named []string
		want  string
	}{
		{[]string{"staff", "eng", "eng", "", "a\nb"}, "eng\nstaff"}, {nil, "eng\nstaff"}, {[]string{"eng"}, "eng"}, {nil, "eng"}, {[]string{}, ""}, {nil, ""},
	} {
		dave := p.identity("dave")
		dave.Groups = step.named
		p.set(func(p *provider) { p.tokens["token-of-dave"] = dave })
		id = identityOf(t, a, p, "dave")
		stored, err := state.User(t.Context(), id.User.ID)
		now, other := a.Current(t.Context(), c)
		if err != nil || other != nil || id.User.Groups != step.want || stored.Groups != step.want || now.User.Groups != step.want {
			t.Errorf("%q: %q in the token, %q in the store, %q in a stream; %v, %v", step.named, id.User.Groups, stored.Groups, now.User.Groups, err, other)
		}
	}
}

// identityOf makes p the only provider, and returns the identity of one of its subjects.
func identityOf(t *testing.T, a *Access, p *provider, subject string) core.Identity {
	t.Helper()
	a.SetProviders([]Provider{{Adapter: p}}, []string{"https://base"})
	return identity(t, a, subject)
}

func TestAuthAdminsMatchesAdminsByGroup(t *testing.T) {
	rules := Enrollment{Admins: []string{"operators"}}
	a, _ := enrolled(t, rules, "carol")
	p := newProvider("https://idp", "dave", "erin")
	dave := p.identity("dave")
	dave.Groups = []string{"staff", "operators"}
	p.tokens["token-of-dave"] = dave
	a.SetProviders([]Provider{{Adapter: p, Enrollment: rules}}, []string{"https://base"})
	for subject, want := range map[string]core.Role{"dave": core.RoleAdmin, "erin": core.RoleMember} {
		if id := identity(t, a, subject); id.User.OrgRole != want {
			t.Errorf("%s is %s, want %s", subject, id.User.OrgRole, want)
		}
	}
}
