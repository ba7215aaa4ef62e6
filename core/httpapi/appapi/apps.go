package appapi

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

// List handles GET /v1/apps.
func (h *Handlers) List(_ *fiber.Ctx, caller core.Caller) (any, error) {
	list := slices.Clone(h.Apps.List(caller.Workspace.ID))
	for i, app := range list {
		list[i] = h.forCaller(caller, app)
	}
	return fiber.Map{"apps": httpio.OrEmpty(list)}, nil
}

// Install handles POST /v1/apps/install.
func (h *Handlers) Install(c *fiber.Ctx, caller core.Caller, r source.Request) (any, error) {
	kind, err := r.Kind()
	if err != nil {
		return nil, err
	}
	if err := caller.MayInstall(kind); err != nil {
		return nil, err
	}
	r.AllowPrivate, r.Restricted = caller.MayReachPrivate(), !caller.MayInstallUnconfined()
	r.Caller, r.Hints = caller, true
	ctx, done := httpio.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Install(ctx, caller.Workspace.ID, r)
	return h.forCaller(caller, app), httpio.WithCode(core.CodeInstallFailed, "the installation failed", err)
}

type uninstallResponse struct {
	Name          string `json:"name"`
	Uninstalled   bool   `json:"uninstalled"`
	DataPreserved bool   `json:"dataPreserved"`
	DataPath      string `json:"dataPath"`
}

// Uninstall handles DELETE /v1/apps/:name.
func (h *Handlers) Uninstall(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	dataPath, err := h.Apps.Uninstall(c.UserContext(), caller.Workspace.ID, name)
	return uninstallResponse{Name: name, Uninstalled: true, DataPreserved: true, DataPath: dataPath}, httpio.WithCode(core.CodeUninstallFailed, "the app could not be uninstalled", err)
}

// Restore handles POST /v1/apps/:name/restore, which undoes Uninstall.
func (h *Handlers) Restore(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	app, err := h.Apps.Restore(c.UserContext(), caller.Workspace.ID, name)
	return h.forCaller(caller, app), err
}

type statusResponse struct {
	Name   string     `json:"name"`
	Status core.State `json:"status"`
}

// Start handles POST /v1/apps/:name/start.
func (h *Handlers) Start(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	ctx, done := httpio.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Start(ctx, caller.Workspace.ID, name)
	err = h.withHints(caller, name, err)
	return statusResponse{Name: app.Name, Status: app.Status}, httpio.WithCode(core.CodeStartFailed, "the app could not be started", err)
}

// Stop handles POST /v1/apps/:name/stop.
func (h *Handlers) Stop(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	app, err := h.Apps.Stop(c.UserContext(), caller.Workspace.ID, name)
	return statusResponse{Name: app.Name, Status: app.Status}, httpio.WithCode(core.CodeStopFailed, "the app could not be stopped", err)
}

// appName returns the :name of a path. It returns core.CodeNotFound for a value that cannot be a server name.
func appName(c *fiber.Ctx) (string, error) {
	name := c.Params("name")
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return "", core.Errorf(core.CodeNotFound, "there is no such app; app names consist of a-z, 0-9 and -")
		}
	}
	return name, nil
}

// appResponse is an app, along with the tools that models refused.
type appResponse struct {
	apps.Details
	RefusedTools []core.RefusedTool `json:"refusedTools,omitempty"`
}

// Get handles GET /v1/apps/:name.
func (h *Handlers) Get(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	details, err := h.Apps.Details(caller.Workspace.ID, name)
	if err != nil {
		return nil, err
	}
	refused, err := h.Models.RefusedTools(c.UserContext(), caller, name)
	if err != nil {
		return nil, err
	}
	if caller.MayManageApps() != nil {
		details = details.ForMember()
		for i := range refused {
			refused[i].Reason = ""
		}
	}
	details.App = h.forCaller(caller, details.App)
	return appResponse{details, refused}, nil
}

// Configure handles PATCH /v1/apps/:name.
func (h *Handlers) Configure(c *fiber.Ctx, caller core.Caller, r apps.Settings) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	ctx, done := httpio.CancelOnDisconnect(c)
	defer done()
	r.Caller = caller
	app, err := h.Apps.Configure(ctx, caller.Workspace.ID, name, r)
	err = h.withHints(caller, name, err)
	return app, httpio.WithCode(core.CodeStartFailed, "the app could not be configured", err)
}

// Restart handles POST /v1/apps/:name/restart.
func (h *Handlers) Restart(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	ctx, done := httpio.CancelOnDisconnect(c)
	defer done()
	app, err := h.Apps.Restart(ctx, caller.Workspace.ID, name)
	err = h.withHints(caller, name, err)
	return statusResponse{Name: app.Name, Status: app.Status}, httpio.WithCode(core.CodeStartFailed, "the app could not be restarted", err)
}

// Update handles POST /v1/apps/:name/update. If there is no body, it updates to the newest version.
func (h *Handlers) Update(c *fiber.Ctx, caller core.Caller, r source.UpdateRequest) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	ctx, done := httpio.CancelOnDisconnect(c)
	defer done()
	r.Restricted, r.Caller = !caller.MayInstallUnconfined(), caller
	app, err := h.Apps.Update(ctx, caller.Workspace.ID, name, r)
	return h.forCaller(caller, app), httpio.WithCode(core.CodeInstallFailed, "the app could not be updated", err)
}

// Import handles POST /v1/apps/import. Its body is the mcpServers object of an MCP client's configuration.
func (h *Handlers) Import(c *fiber.Ctx, caller core.Caller, r source.ImportRequest) (any, error) {
	r.AllowPrivate, r.Restricted, r.Allowed = caller.MayReachPrivate(), !caller.MayInstallUnconfined(), caller.MayInstall
	r.Caller = caller
	if r.DryRun {
		c.Locals(httpio.AuditTarget{}, "dry run")
	}
	ctx, done := httpio.CancelOnDisconnect(c)
	defer done()
	result, err := h.Apps.Import(ctx, caller.Workspace.ID, r)
	return h.withMissingOf(caller, result), httpio.WithCode(core.CodeInstallFailed, "the import failed", err)
}
