package people_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/internal/testkit/fakepeople"
)

func member(role core.Role) core.Caller {
	return core.Caller{
		Identity:  core.Identity{User: core.User{ID: "usr_bob"}},
		Workspace: core.Workspace{ID: "ws_a", Role: role},
	}
}

func TestAKeyNeedsANameARoleThatItsCreatorHasAndAFutureExpiry(t *testing.T) {
	for name, c := range map[string]struct {
		role core.Role // the role of the person who creates the key
		key  people.NewKey
		want core.Code
	}{
		"only a name":                       {core.RoleMember, people.NewKey{Name: " ci "}, ""},
		"an admin key, created by an admin": {core.RoleAdmin, people.NewKey{Name: "ci", Role: core.RoleAdmin}, ""},
		"an admin key, created by a member": {core.RoleMember, people.NewKey{Name: "ci", Role: core.RoleAdmin}, core.CodeForbidden},
		"no name":                           {core.RoleAdmin, people.NewKey{Name: " "}, core.CodeBadRequest},
		"a long name":                       {core.RoleAdmin, people.NewKey{Name: strings.Repeat("ü", 101)}, core.CodeBadRequest},
		"an owner key":                      {core.RoleAdmin, people.NewKey{Name: "ci", Role: core.RoleOwner}, core.CodeBadRequest},
		"a key that has already expired":    {core.RoleAdmin, people.NewKey{Name: "ci", ExpiresAt: time.Now()}, core.CodeBadRequest},
		"a key that expires in 1 h":         {core.RoleAdmin, people.NewKey{Name: "ci", ExpiresAt: time.Now().Add(time.Hour)}, ""},
	} {
		made, text, err := people.New(fakepeople.New(), fakepeople.New(), hclog.NewNullLogger()).CreateKey(t.Context(), member(c.role), c.key)
		if c.want != "" {
			if core.CodeOf(err) != c.want || text != "" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			continue
		}
		if err != nil || made.Name != "ci" || made.User.ID != "usr_bob" || made.Workspace != "ws_a" || !strings.HasPrefix(text.Reveal(), core.APIKeyPrefix) || len(text.Reveal()) < 50 {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
}

func TestAnAPIKeyCannotCreateKeysButUsersCan(t *testing.T) {
	on := func(string) bool { return true }
	key := member(core.RoleAdmin)
	key.Issuer = core.IssuerKey
	if err := people.MakeKey().Check(key, on, "this"); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a key: %v", err)
	}
	if err := people.MakeKey().Check(member(core.RoleMember), on, "this"); err != nil {
		t.Errorf("a member: %v", err)
	}
}

func TestManagingUsersRequiresTheFlagAndAnOrganizationAdmin(t *testing.T) {
	for name, c := range map[string]struct {
		requirement core.Requirement
		flag        string
	}{"users": {people.ManageUsers(), "userManagement"}, "workspaces": {people.ManageWorkspaces(), "workspaceManagement"}} {
		admin := member(core.RoleMember)
		admin.User.OrgRole = core.RoleAdmin
		on, off := func(flag string) bool { return flag == c.flag }, func(string) bool { return false }
		if err := c.requirement.Check(admin, on, "this"); err != nil {
			t.Errorf("%s, an admin: %v", name, err)
		}
		if err := c.requirement.Check(admin, off, "this"); core.CodeOf(err) != core.CodeFeatureDisabled || !strings.Contains(err.Error(), c.flag) {
			t.Errorf("%s, while the flag is off: %v", name, err)
		}
		if err := c.requirement.Check(member(core.RoleAdmin), on, "this"); core.CodeOf(err) != core.CodeForbidden {
			t.Errorf("%s, an admin only of the workspace: %v", name, err)
		}
	}
}

func TestAMergeNeedsRightsOverBothUsers(t *testing.T) {
	user := func(id string, role core.Role) core.User { return core.User{ID: id, OrgRole: role} }
	for name, c := range map[string]struct {
		by         core.User
		from, into string
		want       core.Code // "" if it succeeds
	}{
		"two members, by an admin":                    {user("usr_admin", core.RoleAdmin), "usr_ann", "usr_bob", ""},
		"an admin into a member":                      {user("usr_admin", core.RoleAdmin), "usr_admin", "usr_bob", ""},
		"a member into the caller":                    {user("usr_admin", core.RoleAdmin), "usr_ann", "usr_admin", core.CodeForbidden},
		"a member into the owner of the organization": {user("usr_boss", core.RoleOwner), "usr_ann", "usr_boss", core.CodeForbidden},
		"an owner into a member":                      {user("usr_admin", core.RoleAdmin), "usr_boss", "usr_ann", core.CodeForbidden},
		"an owner into a member, by an owner":         {user("usr_root", core.RoleOwner), "usr_boss", "usr_ann", ""},
		"a user who does not exist":                   {user("usr_admin", core.RoleAdmin), "usr_none", "usr_ann", core.CodeNotFound},
		"no user":                                     {user("usr_admin", core.RoleAdmin), "", "usr_ann", core.CodeBadRequest},
	} {
		store := fakepeople.New(user("usr_ann", core.RoleMember), user("usr_bob", core.RoleMember), user("usr_admin", core.RoleAdmin), user("usr_boss", core.RoleOwner))
		caller := core.Caller{Identity: core.Identity{User: c.by}}
		_, err := people.New(store, store, hclog.NewNullLogger()).Merge(t.Context(), caller, c.from, c.into)
		if done := len(store.Done()) == 1; done != (c.want == "") || err != nil && core.CodeOf(err) != c.want {
			t.Errorf("%s: %v, done %v", name, err, store.Done())
		}
	}
}
