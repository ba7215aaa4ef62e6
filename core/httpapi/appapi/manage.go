package appapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// Get is GET /v1/apps/:name.
func (h *Handlers) Get(c *fiber.Ctx, caller core.Caller) error {
	name, err := appName(c)
	if err != nil {
		return err
	}
	details, err := h.Apps.Details(caller.Workspace.ID, name)
	if err != nil {
		return err
	}
	if caller.MayManageApps() != nil {
		details = details.ForMember()
	}
	return c.JSON(details)
}

// Configure is PATCH /v1/apps/:name.
func (h *Handlers) Configure(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	r, err := body.Read[apps.Settings](c.Context())
	if err != nil {
		return err
	}
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Configure(ctx, caller.Workspace.ID, name, r)
	if err != nil {
		return respond.WithCode(core.CodeStartFailed, "the app could not be configured", err)
	}
	return c.JSON(app)
}

// Restart is POST /v1/apps/:name/restart.
func (h *Handlers) Restart(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Restart(ctx, caller.Workspace.ID, name)
	if err != nil {
		return respond.WithCode(core.CodeStartFailed, "the app could not be restarted", err)
	}
	return c.JSON(statusResponse{Name: app.Name, Status: app.Status})
}

// Update is POST /v1/apps/:name/update. Without a body it updates to the newest version.
func (h *Handlers) Update(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	var r source.UpdateRequest
	if len(c.Context().PostBody()) > 0 {
		if r, err = body.Read[source.UpdateRequest](c.Context()); err != nil {
			return err
		}
	}
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	r.Restricted = !caller.MayInstallUnconfined()
	app, err := h.Apps.Update(ctx, caller.Workspace.ID, name, r)
	if err != nil {
		return respond.WithCode(core.CodeInstallFailed, "the app could not be updated", err)
	}
	return c.JSON(app)
}
