package appapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// Import is POST /v1/apps/import: the mcpServers object of an MCP client.
func (h *Handlers) Import(c *fiber.Ctx, caller core.Caller) error {
	if err := caller.MayManageApps(); err != nil {
		return err
	}
	r, err := body.Read[source.ImportRequest](c.Context())
	if err != nil {
		return err
	}
	r.AllowPrivate, r.Restricted, r.Allowed = caller.MayReachPrivate(), !caller.MayInstallUnconfined(), caller.MayInstall
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	result, err := h.Apps.Import(ctx, caller.Workspace.ID, r)
	if err != nil {
		return respond.WithCode(core.CodeInstallFailed, "the import failed", err)
	}
	return c.JSON(result)
}
