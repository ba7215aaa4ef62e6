package tools

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/people"
)

// ManageUsers returns system__manage_users.
func ManageUsers(p *people.Directory) System {
	return System{
		Name: "manage_users", Title: "Manage users", Requirement: people.ManageUsers(),
		Description: "Lists the users, gives one a role in the organization, or deletes one along with everything that belongs only to them. " +
			"Users are created when they log in. A role set here takes precedence over the identity provider's; an empty one restores the provider's.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "set_role", "delete"]},
    "user": {"type": "string", "description": "set_role, delete: the user's id, as list returns it"},
    "role": {"type": "string", "enum": ["owner", "admin", "member", ""], "description": "set_role"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			var in struct {
				Action string     `json:"action"`
				User   string     `json:"user"`
				Role   *core.Role `json:"role"`
			}
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			switch {
			case in.Action == "list":
				return p.Users(ctx)
			case in.Action == "delete":
				return p.DeleteUser(ctx, c, in.User)
			case in.Role == nil:
				return nil, core.Errorf(core.CodeBadRequest, "role is missing; it must be owner, admin, member, or empty to leave it to the identity provider")
			}
			return p.SetRole(ctx, c, in.User, *in.Role) // the schema has no other action
		},
	}
}

// ManageWorkspaces returns system__manage_workspaces.
func ManageWorkspaces(p *people.Directory) System {
	return System{
		Name: "manage_workspaces", Title: "Manage workspaces", Requirement: people.ManageWorkspaces(),
		Description: "Lists, creates, renames or deletes workspaces, and manages their members. Whoever creates a workspace becomes its first admin. " +
			"A workspace with installed apps, a personal workspace and the default one cannot be deleted.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "create", "rename", "delete", "list_members", "put_member", "remove_member"]},
    "workspace": {"type": "string", "description": "its id, ws_...; all actions except list and create"},
    "name": {"type": "string", "description": "create, rename"},
    "user": {"type": "string", "description": "put_member, remove_member: the user's id or email"},
    "role": {"type": "string", "enum": ["admin", "member"], "default": "member", "description": "put_member"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			var in struct {
				Action    string    `json:"action"`
				Workspace string    `json:"workspace"`
				Name      string    `json:"name"`
				User      string    `json:"user"`
				Role      core.Role `json:"role"`
			}
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			switch in.Action {
			case "list":
				return p.Workspaces(ctx)
			case "create":
				return p.CreateWorkspace(ctx, c, in.Name)
			case "rename":
				return p.RenameWorkspace(ctx, in.Workspace, in.Name)
			case "delete":
				return p.DeleteWorkspace(ctx, in.Workspace)
			case "list_members":
				return p.Members(ctx, in.Workspace)
			case "put_member":
				return p.PutMember(ctx, in.Workspace, in.User, in.Role)
			}
			return p.RemoveMember(ctx, in.Workspace, in.User) // the schema has no other action
		},
	}
}
