package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/people"
)

// ListUsers handles GET /v1/users.
func (h *Handlers) ListUsers(c *fiber.Ctx, _ core.Caller) (any, error) {
	return h.People.Users(c.UserContext())
}

// UserPatch is the request body of UpdateUser.
type UserPatch struct {
	OrgRole *core.Role `json:"orgRole"`
}

// UpdateUser handles PATCH /v1/users/:id.
func (h *Handlers) UpdateUser(c *fiber.Ctx, caller core.Caller, r UserPatch) (any, error) {
	if r.OrgRole == nil {
		return nil, core.Errorf(core.CodeBadRequest, "orgRole is missing; it must be owner, admin, member, or empty for the role from the identity provider")
	}
	return h.People.SetRole(c.UserContext(), caller, c.Params("id"), *r.OrgRole)
}

// DeleteUser handles DELETE /v1/users/:id.
func (h *Handlers) DeleteUser(c *fiber.Ctx, caller core.Caller) (any, error) {
	return h.People.DeleteUser(c.UserContext(), caller, c.Params("id"))
}

// UserMerge is the request body of MergeUser.
type UserMerge struct {
	From string `json:"from"` // the user to remove
}

// MergeUser handles POST /v1/users/:id/merge.
func (h *Handlers) MergeUser(c *fiber.Ctx, caller core.Caller, r UserMerge) (any, error) {
	return h.People.Merge(c.UserContext(), caller, r.From, c.Params("id"))
}

// ListWorkspaces handles GET /v1/workspaces.
func (h *Handlers) ListWorkspaces(c *fiber.Ctx, _ core.Caller) (any, error) {
	return h.People.Workspaces(c.UserContext())
}

// WorkspaceName is the request body of CreateWorkspace and RenameWorkspace.
type WorkspaceName struct {
	Name string `json:"name"`
}

// CreateWorkspace handles POST /v1/workspaces.
func (h *Handlers) CreateWorkspace(c *fiber.Ctx, caller core.Caller, r WorkspaceName) (any, error) {
	return h.People.CreateWorkspace(c.UserContext(), caller, r.Name)
}

// RenameWorkspace handles PATCH /v1/workspaces/:id.
func (h *Handlers) RenameWorkspace(c *fiber.Ctx, _ core.Caller, r WorkspaceName) (any, error) {
	return h.People.RenameWorkspace(c.UserContext(), c.Params("id"), r.Name)
}

// DeleteWorkspace handles DELETE /v1/workspaces/:id.
func (h *Handlers) DeleteWorkspace(c *fiber.Ctx, _ core.Caller) (any, error) {
	return h.People.DeleteWorkspace(c.UserContext(), c.Params("id"))
}

// ListMembers handles GET /v1/workspaces/:id/members.
func (h *Handlers) ListMembers(c *fiber.Ctx, caller core.Caller) (any, error) {
	if err := caller.MayManageMembers(c.Params("id")); err != nil {
		return nil, err
	}
	return h.People.Members(c.UserContext(), c.Params("id"))
}

// NewMember is the request body of PutMember.
type NewMember struct {
	User string    `json:"user"` // a user ID or an email address
	Role core.Role `json:"role"`
}

// PutMember handles POST /v1/workspaces/:id/members. It adds a user to the workspace or changes a member's role.
func (h *Handlers) PutMember(c *fiber.Ctx, caller core.Caller, r NewMember) (any, error) {
	if err := caller.MayManageMembers(c.Params("id")); err != nil {
		return nil, err
	}
	return h.People.PutMember(c.UserContext(), c.Params("id"), r.User, r.Role)
}

// RemoveMember handles DELETE /v1/workspaces/:id/members/:user.
func (h *Handlers) RemoveMember(c *fiber.Ctx, caller core.Caller) (any, error) {
	if err := caller.MayManageMembers(c.Params("id")); err != nil {
		return nil, err
	}
	return h.People.RemoveMember(c.UserContext(), c.Params("id"), c.Params("user"))
}

// keyResponse is an API key. Key is the secret itself, which is returned only once, when the key is created.
type keyResponse struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	User       core.User `json:"user"`
	Workspace  string    `json:"workspace"`
	Role       core.Role `json:"role"`
	OrgRole    core.Role `json:"orgRole,omitempty"`
	Accounts   bool      `json:"accounts"`
	View       string    `json:"view,omitempty"`
	Surface    string    `json:"surface,omitempty"`
	CreatedAt  string    `json:"createdAt"`
	ExpiresAt  *string   `json:"expiresAt"`
	LastUsedAt *string   `json:"lastUsedAt"`
	Key        string    `json:"key,omitempty"`
}

func keyOf(k core.APIKey, text core.Secret) keyResponse {
	return keyResponse{
		ID: k.ID, Name: k.Name, User: k.User, Workspace: k.Workspace, Role: k.Role, OrgRole: k.OrgRole, Accounts: k.Accounts, View: k.View, Surface: k.Surface, Key: text.Reveal(),
		CreatedAt: core.Timestamp(k.CreatedAt), ExpiresAt: httpio.TimeOrNull(k.ExpiresAt), LastUsedAt: httpio.TimeOrNull(k.LastUsedAt),
	}
}

// ListKeys handles GET /v1/keys.
func (h *Handlers) ListKeys(c *fiber.Ctx, caller core.Caller) (any, error) {
	all, err := h.People.Keys(c.UserContext(), caller)
	shown := make([]keyResponse, len(all))
	for i, k := range all {
		shown[i] = keyOf(k, "")
	}
	return fiber.Map{"keys": shown}, err
}

// KeyRequest is the request body of CreateKey.
type KeyRequest struct {
	Name      string    `json:"name"`
	Role      core.Role `json:"role"`
	OrgRole   core.Role `json:"orgRole"`
	Accounts  bool      `json:"accounts"`
	View      string    `json:"view"`
	Surface   string    `json:"surface"`
	ExpiresAt *string   `json:"expiresAt"`
}

// CreateKey handles POST /v1/keys.
func (h *Handlers) CreateKey(c *fiber.Ctx, caller core.Caller, r KeyRequest) (any, error) {
	wanted := people.NewKey{Name: r.Name, Role: r.Role, OrgRole: r.OrgRole, Accounts: r.Accounts, View: r.View, Surface: r.Surface}
	if r.View != "" && !h.Views.Has(caller.Workspace.ID, r.View) {
		return nil, core.Errorf(core.CodeBadRequest, "view is %.80q, but this workspace has no view with that name", r.View)
	}
	if r.ExpiresAt != nil {
		var err error
		if wanted.ExpiresAt, _, err = httpio.ParseTime("expiresAt", *r.ExpiresAt); err != nil {
			return nil, err
		}
	}
	made, text, err := h.People.CreateKey(c.UserContext(), caller, wanted)
	return keyOf(made, text), err
}

// RevokeKey handles DELETE /v1/keys/:id.
func (h *Handlers) RevokeKey(c *fiber.Ctx, caller core.Caller) (any, error) {
	id := c.Params("id")
	return httpio.Deleted{ID: id, Deleted: true}, h.People.RevokeKey(c.UserContext(), caller, id)
}
