package people

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

const maxKeyName = 100 // characters

// NewKey describes an API key to create.
type NewKey struct {
	Name      string
	Role      core.Role // "" means member
	OrgRole   core.Role // "" means member
	Accounts  bool      // calls made with the key use the caller's linked accounts
	View      string    // the view that limits what the key sees; "" for none
	Surface   string    // how tools are listed to clients that do not choose; "" leaves it open
	ExpiresAt time.Time // zero means never
}

// CreateKey creates an API key for the caller in the caller's workspace and returns it with its text. The text cannot
// be read again later. The error is core.CodeBadRequest for an invalid field, and core.CodeForbidden for a role above
// the caller's.
func (d *Directory) CreateKey(ctx context.Context, c core.Caller, k NewKey) (core.APIKey, core.Secret, error) {
	if err := cmp.Or(core.CheckText("name", k.Name), core.CheckSurface("surface", k.Surface)); err != nil {
		return core.APIKey{}, "", err
	}
	k.Role, k.Name = cmp.Or(k.Role, core.RoleMember), strings.TrimSpace(k.Name)
	if k.OrgRole == core.RoleMember {
		k.OrgRole = ""
	}
	n := utf8.RuneCountInString(k.Name)
	switch {
	case n == 0 || n > maxKeyName:
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "name must have between 1 and %d characters", maxKeyName)
	case k.Role != core.RoleAdmin && k.Role != core.RoleMember:
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "role must be admin or member")
	case k.OrgRole != "" && k.OrgRole != core.RoleAdmin:
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "orgRole must be admin or member")
	case k.OrgRole == core.RoleAdmin && k.View != "":
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "a key that is bound to a view has no role in the organization; leave out orgRole or view")
	case k.OrgRole == core.RoleAdmin && !c.User.OrgRole.Admin():
		return core.APIKey{}, "", core.Errorf(core.CodeForbidden, "only an admin of the organization can create a key with the orgRole admin")
	case k.Role == core.RoleAdmin && k.View != "":
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "a key that is bound to a view must have the role member, because an admin could change the view; leave out role or view")
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(time.Now()):
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "expiresAt must be in the future")
	case k.Role == core.RoleAdmin && !c.Workspace.Role.Admin():
		return core.APIKey{}, "", core.Errorf(core.CodeForbidden, "creating an admin key requires the admin role in workspace %s", c.Workspace.ID)
	}
	text, hash := core.NewAPIKey()
	made, err := d.store.CreateAPIKey(ctx, core.APIKey{
		Name: k.Name, User: c.User, Workspace: c.Workspace.ID, Role: k.Role, OrgRole: k.OrgRole, Accounts: k.Accounts, View: k.View, Surface: k.Surface, ExpiresAt: k.ExpiresAt,
	}, hash)
	if err != nil {
		return core.APIKey{}, "", err
	}
	d.log.Info("API key created", "key", made.ID, "name", made.Name, "workspace", made.Workspace, "role", string(made.Role), "orgRole", string(made.OrgRole), "user", c.User.ID)
	return made, text, nil
}

// Keys returns API keys of the caller's workspace: all of them for its admins, and only their own for everyone else.
func (d *Directory) Keys(ctx context.Context, c core.Caller) ([]core.APIKey, error) {
	return d.store.APIKeys(ctx, c.Workspace.ID, keyOwner(c))
}

// RevokeKey deletes an API key and ends its sessions and streams, on all servers. The error is core.CodeNotFound if
// there is no such key or the caller may not see it.
func (d *Directory) RevokeKey(ctx context.Context, c core.Caller, id string) error {
	if err := d.store.DeleteAPIKey(ctx, c.Workspace.ID, keyOwner(c), id); err != nil {
		return err
	}
	d.log.Info("API key revoked", "key", id, "workspace", c.Workspace.ID, "user", c.User.ID)
	return nil
}

// keyOwner returns the id of the user that the caller may manage keys for; "" means all users.
func keyOwner(c core.Caller) string {
	if c.Workspace.Role.Admin() {
		return ""
	}
	return c.User.ID
}
