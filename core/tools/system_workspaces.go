package tools

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// Workspaces is what system__manage_workspaces needs of the store.
type Workspaces interface {
	Users(ctx context.Context) ([]core.User, error)
	AllWorkspaces(ctx context.Context) ([]core.WorkspaceInfo, error)
	CreateWorkspace(ctx context.Context, name, adminID string) (core.Workspace, error)
	RenameWorkspace(ctx context.Context, id, name string) error
	DeleteWorkspace(ctx context.Context, id string) error
	Members(ctx context.Context, workspace string) ([]core.Member, error)
	PutMember(ctx context.Context, workspace, userID string, role core.Role) error
	DeleteMember(ctx context.Context, workspace, userID string) error
}

// ManageWorkspaces is system__manage_workspaces, for admins of the organization while the flag
// workspaceManagement is on.
func ManageWorkspaces(w Workspaces, m Memberships) System {
	return System{
		Name: "manage_workspaces", Title: "Manage workspaces", Flags: []string{config.FlagWorkspaceManagement}, AdminOnly: true,
		Description: "Lists, creates, renames or deletes workspaces, and says who is in them. Whoever creates one is its first admin. " +
			"One in which apps are installed, a personal one and the default one cannot be deleted.",
		Schema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "create", "rename", "delete", "list_members", "put_member", "remove_member"]},
    "workspace": {"type": "string", "description": "its id, ws_...; all actions but list and create"},
    "name": {"type": "string", "description": "create, rename"},
    "user": {"type": "string", "description": "put_member, remove_member: the user's id or email"},
    "role": {"type": "string", "enum": ["admin", "member"], "default": "member", "description": "put_member"}
  },
  "required": ["action"],
  "additionalProperties": false
}`),
		Run: func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error) {
			in := manageWorkspaces{Role: core.RoleMember}
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, core.Errorf(core.CodeBadRequest, "arguments: %w", err)
			}
			if err := in.check(); err != nil {
				return nil, err
			}
			return in.run(ctx, w, m, c)
		},
	}
}

type manageWorkspaces struct {
	Action    string    `json:"action"`
	Workspace string    `json:"workspace"`
	Name      string    `json:"name"`
	User      string    `json:"user"`
	Role      core.Role `json:"role"`
}

// check says which field an action lacks.
func (in manageWorkspaces) check() error {
	need := func(field, value string) error {
		if value == "" {
			return core.Errorf(core.CodeBadRequest, "%s is missing: %s needs it", field, in.Action)
		}
		return nil
	}
	switch in.Action {
	case "list":
		return nil
	case "create":
		return need("name", in.Name)
	}
	if err := need("workspace", in.Workspace); err != nil {
		return err
	}
	switch in.Action {
	case "rename":
		return need("name", in.Name)
	case "put_member", "remove_member":
		return need("user", in.User)
	}
	return nil
}

func (in manageWorkspaces) run(ctx context.Context, w Workspaces, m Memberships, c core.Caller) (any, error) {
	done := func(err error, whose string, answer map[string]any) (any, error) {
		if err != nil {
			return nil, err
		}
		m.MembersChanged(whose)
		return answer, nil
	}
	if strings.Contains(in.User, "@") {
		var err error
		if in.User, err = userByEmail(ctx, w, in.User); err != nil {
			return nil, err
		}
	}
	switch in.Action {
	case "list":
		all, err := w.AllWorkspaces(ctx)
		return map[string]any{"workspaces": all}, err
	case "list_members":
		members, err := w.Members(ctx, in.Workspace)
		return map[string]any{"workspace": in.Workspace, "members": members}, err
	case "create":
		made, err := w.CreateWorkspace(ctx, in.Name, c.User.ID)
		return done(err, c.User.ID, map[string]any{"workspace": made})
	case "rename":
		return done(w.RenameWorkspace(ctx, in.Workspace, in.Name), "", map[string]any{"workspace": in.Workspace, "name": in.Name})
	case "delete":
		return done(w.DeleteWorkspace(ctx, in.Workspace), "", map[string]any{"workspace": in.Workspace, "deleted": true})
	case "put_member":
		return done(w.PutMember(ctx, in.Workspace, in.User, in.Role), in.User, map[string]any{"workspace": in.Workspace, "user": in.User, "role": in.Role})
	default: // remove_member: the schema knows no others
		return done(w.DeleteMember(ctx, in.Workspace, in.User), in.User, map[string]any{"workspace": in.Workspace, "user": in.User, "removed": true})
	}
}

// userByEmail returns the id of the only user with an email address.
func userByEmail(ctx context.Context, w Workspaces, email string) (string, error) {
	all, err := w.Users(ctx)
	if err != nil {
		return "", err
	}
	id := ""
	for _, u := range all {
		if !strings.EqualFold(u.Email, email) {
			continue
		}
		if id != "" {
			return "", core.Errorf(core.CodeBadRequest, "several users have the email %s; give the user's id", email)
		}
		id = u.ID
	}
	if id == "" {
		return "", core.Errorf(core.CodeNotFound, "no user has the email %s; users appear with their first login", email)
	}
	return id, nil
}
