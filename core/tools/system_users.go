package tools

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// People is what system__manage_users needs of the store.
type People interface {
	Users(ctx context.Context) ([]core.User, error)
	User(ctx context.Context, id string) (core.User, error)
	SetOrgRole(ctx context.Context, id string, role core.Role) error
	DeleteUser(ctx context.Context, id string) error
}

// Memberships forgets what is remembered of a user's rights; "" means everybody's.
type Memberships interface{ MembersChanged(userID string) }

// ManageUsers is system__manage_users, for admins of the organization while the flag
// userManagement is on. What concerns an owner takes an owner.
func ManageUsers(p People, m Memberships) System {
	return System{
		Name: "manage_users", Title: "Manage users", Flags: []string{config.FlagUserManagement}, AdminOnly: true,
		Description: "Lists the users, gives one a role in the organization, or deletes one with everything that is theirs alone. " +
			"Users come by logging in. A role given here counts more than what the identity provider says; an empty one leaves it to the provider again.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "set_role", "delete"]},
    "user": {"type": "string", "description": "set_role, delete: the user's id, as list tells it"},
    "role": {"type": "string", "enum": ["owner", "admin", "member", ""], "description": "set_role"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			var in manageUsers
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, core.Errorf(core.CodeBadRequest, "arguments: %w", err)
			}
			return in.run(ctx, p, m, c)
		},
	}
}

type manageUsers struct {
	Action string     `json:"action"`
	User   string     `json:"user"`
	Role   *core.Role `json:"role"`
}

func (in manageUsers) run(ctx context.Context, p People, m Memberships, c core.Caller) (any, error) {
	if in.Action == "list" {
		users, err := p.Users(ctx)
		return map[string]any{"users": users}, err
	}
	if in.User == "" {
		return nil, core.Errorf(core.CodeBadRequest, "user is missing: the id of the user to %s", in.Action)
	}
	user, err := p.User(ctx, in.User)
	if err != nil {
		return nil, err
	}
	if err := in.mayConcern(user, c); err != nil {
		return nil, err
	}
	if in.Action == "delete" {
		if err := p.DeleteUser(ctx, user.ID); err != nil {
			return nil, err
		}
		m.MembersChanged(user.ID)
		return map[string]any{"user": user.ID, "deleted": true}, nil
	}
	if in.Role == nil {
		return nil, core.Errorf(core.CodeBadRequest, "role is missing: owner, admin, member, or empty to leave it to the identity provider")
	}
	if err := p.SetOrgRole(ctx, user.ID, *in.Role); err != nil {
		return nil, err
	}
	m.MembersChanged(user.ID)
	if *in.Role != "" {
		user.OrgRole = *in.Role
	}
	return map[string]any{"user": user}, nil
}

// mayConcern keeps admins from making owners and unmaking them, and everyone from deleting
// themselves.
func (in manageUsers) mayConcern(user core.User, c core.Caller) error {
	owners := user.OrgRole == core.RoleOwner || in.Role != nil && *in.Role == core.RoleOwner
	if owners && c.User.OrgRole != core.RoleOwner {
		return core.Errorf(core.CodeForbidden, "what concerns an owner needs the organization role owner")
	}
	if in.Action == "delete" && user.ID == c.User.ID {
		return core.Errorf(core.CodeBadRequest, "nobody can delete themselves; ask another admin")
	}
	return nil
}
