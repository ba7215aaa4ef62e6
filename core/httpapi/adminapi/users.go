package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

const manageUsers = "manage_users"

// ListUsers is GET /v1/users.
func (h *Handlers) ListUsers(c *fiber.Ctx, caller core.Caller) error {
	return h.runSystem(c, caller, manageUsers, map[string]any{"action": "list"})
}

type userPatch struct {
	OrgRole *string `json:"orgRole"`
}

// UpdateUser is PATCH /v1/users/:id.
func (h *Handlers) UpdateUser(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[userPatch](c.Context())
	if err != nil {
		return err
	}
	if r.OrgRole == nil {
		return core.Errorf(core.CodeBadRequest, "orgRole is missing: owner, admin, member, or empty for the role the identity provider says")
	}
	return h.runSystem(c, caller, manageUsers, map[string]any{"action": "set_role", "user": c.Params("id"), "role": *r.OrgRole})
}

// DeleteUser is DELETE /v1/users/:id.
func (h *Handlers) DeleteUser(c *fiber.Ctx, caller core.Caller) error {
	return h.runSystem(c, caller, manageUsers, map[string]any{"action": "delete", "user": c.Params("id")})
}
