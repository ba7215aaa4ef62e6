package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/query"
)

const manageWorkspaces = "manage_workspaces"

// ListWorkspaces is GET /v1/workspaces.
func (h *Handlers) ListWorkspaces(c *fiber.Ctx, caller core.Caller) error {
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "list"})
}

type workspaceRequest struct {
	Name string `json:"name"`
}

// CreateWorkspace is POST /v1/workspaces.
func (h *Handlers) CreateWorkspace(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[workspaceRequest](c.Context())
	if err != nil {
		return err
	}
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "create", "name": r.Name})
}

// RenameWorkspace is PATCH /v1/workspaces/:id.
func (h *Handlers) RenameWorkspace(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[workspaceRequest](c.Context())
	if err != nil {
		return err
	}
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "rename", "workspace": c.Params("id"), "name": r.Name})
}

// DeleteWorkspace is DELETE /v1/workspaces/:id.
func (h *Handlers) DeleteWorkspace(c *fiber.Ctx, caller core.Caller) error {
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "delete", "workspace": c.Params("id")})
}

// ListMembers is GET /v1/workspaces/:id/members.
func (h *Handlers) ListMembers(c *fiber.Ctx, caller core.Caller) error {
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "list_members", "workspace": c.Params("id")})
}

type memberRequest struct {
	User string `json:"user"` // an id or an email
	Role string `json:"role"`
}

// PutMember is POST /v1/workspaces/:id/members: it adds a user or changes the role.
func (h *Handlers) PutMember(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[memberRequest](c.Context())
	if err != nil {
		return err
	}
	if r.Role == "" {
		r.Role = string(core.RoleMember)
	}
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{
		"action": "put_member", "workspace": c.Params("id"), "user": r.User, "role": r.Role,
	})
}

// RemoveMember is DELETE /v1/workspaces/:id/members/:user.
func (h *Handlers) RemoveMember(c *fiber.Ctx, caller core.Caller) error {
	user, err := query.PathText(c, "user")
	if err != nil {
		return err
	}
	return h.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "remove_member", "workspace": c.Params("id"), "user": user})
}
