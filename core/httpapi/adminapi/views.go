package adminapi

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

// Views manages views: named subsets of a workspace's tools. *view.Registry implements it and documents the errors.
type Views interface {
	Has(workspace, name string) bool
	List(workspace string) []view.Info
	Set(ctx context.Context, workspace string, d core.View) (view.Info, error)
	Remove(ctx context.Context, workspace, name string) error
}

// ListViews handles GET /v1/views.
func (h *Handlers) ListViews(_ *fiber.Ctx, caller core.Caller) (any, error) {
	return fiber.Map{"views": h.Views.List(caller.Workspace.ID)}, nil
}

// SetView handles POST /v1/views. It creates a view, or replaces the view of the same name.
func (h *Handlers) SetView(c *fiber.Ctx, caller core.Caller, d core.View) (any, error) {
	return h.Views.Set(c.UserContext(), caller.Workspace.ID, d)
}

type removedView struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

// RemoveView handles DELETE /v1/views/:name.
func (h *Handlers) RemoveView(c *fiber.Ctx, caller core.Caller) (any, error) {
	name := c.Params("name")
	return removedView{Name: name, Deleted: true}, h.Views.Remove(c.UserContext(), caller.Workspace.ID, name)
}
