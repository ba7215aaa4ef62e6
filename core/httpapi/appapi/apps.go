package appapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

type appsResponse struct {
	Apps []core.App `json:"apps"`
}

// List is GET /v1/apps.
func (h *Handlers) List(c *fiber.Ctx, caller core.Caller) error {
	return c.JSON(appsResponse{Apps: respond.OrEmpty(h.Apps.List(caller.Workspace.ID))})
}

// Install is POST /v1/apps/install.
func (h *Handlers) Install(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[source.Request](c.Context())
	if err != nil {
		return err
	}
	kind, err := r.Kind()
	if err != nil {
		return err
	}
	if err := caller.MayInstall(kind); err != nil {
		return err
	}
	r.AllowPrivate, r.Restricted = caller.MayReachPrivate(), !caller.MayInstallUnconfined()
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Install(ctx, caller.Workspace.ID, r)
	if err != nil {
		return respond.WithCode(core.CodeInstallFailed, "the installation failed", err)
	}
	return c.JSON(app)
}

type uninstallResponse struct {
	Name          string `json:"name"`
	Uninstalled   bool   `json:"uninstalled"`
	DataPreserved bool   `json:"dataPreserved"`
	DataPath      string `json:"dataPath"`
}

// Uninstall is DELETE /v1/apps/:name.
func (h *Handlers) Uninstall(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	dataPath, err := h.Apps.Uninstall(c.UserContext(), caller.Workspace.ID, name)
	if err != nil {
		return respond.WithCode(core.CodeUninstallFailed, "the app could not be uninstalled", err)
	}
	return c.JSON(uninstallResponse{Name: name, Uninstalled: true, DataPreserved: true, DataPath: dataPath})
}

type statusResponse struct {
	Name   string     `json:"name"`
	Status core.State `json:"status"`
}

// Start is POST /v1/apps/:name/start.
func (h *Handlers) Start(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	ctx, done := respond.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Start(ctx, caller.Workspace.ID, name)
	if err != nil {
		return respond.WithCode(core.CodeStartFailed, "the app could not be started", err)
	}
	return c.JSON(statusResponse{Name: app.Name, Status: app.Status})
}

// Stop is POST /v1/apps/:name/stop.
func (h *Handlers) Stop(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	app, err := h.Apps.Stop(c.UserContext(), caller.Workspace.ID, name)
	if err != nil {
		return respond.WithCode(core.CodeStopFailed, "the app could not be stopped", err)
	}
	return c.JSON(statusResponse{Name: app.Name, Status: app.Status})
}

// appToManage returns the name of the app in the path when the caller may change it.
func appToManage(c *fiber.Ctx, caller core.Caller) (string, error) {
	name, err := appName(c)
	if err != nil {
		return "", err
	}
	return name, caller.MayManageApps()
}

// appName returns the :name of a path: core.CodeNotFound for what is not a server name.
func appName(c *fiber.Ctx) (string, error) {
	name := c.Params("name")
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return "", core.Errorf(core.CodeNotFound, "no such app; app names consist of a-z, 0-9 and -")
		}
	}
	return name, nil
}
