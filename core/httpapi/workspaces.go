package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

const manageWorkspaces = "manage_workspaces"

// listWorkspaces is GET /v1/workspaces.
func (s *Server) listWorkspaces(c *fiber.Ctx, caller core.Caller) error {
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "list"})
}

type workspaceRequest struct {
	Name string `json:"name"`
}

// createWorkspace is POST /v1/workspaces.
func (s *Server) createWorkspace(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[workspaceRequest](c.Context())
	if err != nil {
		return err
	}
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "create", "name": r.Name})
}

// renameWorkspace is PATCH /v1/workspaces/:id.
func (s *Server) renameWorkspace(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[workspaceRequest](c.Context())
	if err != nil {
		return err
	}
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "rename", "workspace": c.Params("id"), "name": r.Name})
}

// deleteWorkspace is DELETE /v1/workspaces/:id.
func (s *Server) deleteWorkspace(c *fiber.Ctx, caller core.Caller) error {
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "delete", "workspace": c.Params("id")})
}

// listMembers is GET /v1/workspaces/:id/members.
func (s *Server) listMembers(c *fiber.Ctx, caller core.Caller) error {
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "list_members", "workspace": c.Params("id")})
}

type memberRequest struct {
	User string `json:"user"` // an id or an email
	Role string `json:"role"`
}

// putMember is POST /v1/workspaces/:id/members: it adds a user or changes the role.
func (s *Server) putMember(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[memberRequest](c.Context())
	if err != nil {
		return err
	}
	if r.Role == "" {
		r.Role = string(core.RoleMember)
	}
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{
		"action": "put_member", "workspace": c.Params("id"), "user": r.User, "role": r.Role,
	})
}

// removeMember is DELETE /v1/workspaces/:id/members/:user.
func (s *Server) removeMember(c *fiber.Ctx, caller core.Caller) error {
	user, err := pathText(c, "user")
	if err != nil {
		return err
	}
	return s.runSystem(c, caller, manageWorkspaces, map[string]any{"action": "remove_member", "workspace": c.Params("id"), "user": user})
}
