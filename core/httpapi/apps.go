package httpapi

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

type appsResponse struct {
	Apps []core.App `json:"apps"`
}

// listApps is GET /v1/apps.
func (s *Server) listApps(c *fiber.Ctx, caller core.Caller) error {
	return c.JSON(appsResponse{Apps: orEmpty(s.apps.List(caller.Workspace.ID))})
}

// installApp is POST /v1/apps/install.
func (s *Server) installApp(c *fiber.Ctx, caller core.Caller) error {
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
	r.AllowPrivate = caller.MayReachPrivate()
	ctx, done := cancelOnDisconnect(c)
	defer done()
	app, err := s.apps.Install(ctx, caller.Workspace.ID, r)
	if err != nil {
		return withCode(core.CodeInstallFailed, "the installation failed", err)
	}
	return c.JSON(app)
}

type uninstallResponse struct {
	Name          string `json:"name"`
	Uninstalled   bool   `json:"uninstalled"`
	DataPreserved bool   `json:"dataPreserved"`
	DataPath      string `json:"dataPath"`
}

// uninstallApp is DELETE /v1/apps/:name.
func (s *Server) uninstallApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	dataPath, err := s.apps.Uninstall(c.UserContext(), caller.Workspace.ID, name)
	if err != nil {
		return withCode(core.CodeUninstallFailed, "the app could not be removed", err)
	}
	return c.JSON(uninstallResponse{Name: name, Uninstalled: true, DataPreserved: true, DataPath: dataPath})
}

type statusResponse struct {
	Name   string     `json:"name"`
	Status core.State `json:"status"`
}

// startApp is POST /v1/apps/:name/start.
func (s *Server) startApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	ctx, done := cancelOnDisconnect(c)
	defer done()
	app, err := s.apps.Start(ctx, caller.Workspace.ID, name)
	if err != nil {
		return withCode(core.CodeStartFailed, "the app could not be started", err)
	}
	return c.JSON(statusResponse{Name: app.Name, Status: app.Status})
}

// stopApp is POST /v1/apps/:name/stop.
func (s *Server) stopApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	app, err := s.apps.Stop(c.UserContext(), caller.Workspace.ID, name)
	if err != nil {
		return withCode(core.CodeStopFailed, "the app could not be stopped", err)
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

// withCode gives an error without a code that of the operation that failed.
func withCode(code core.Code, message string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	return core.Wrap(code, err, message+"; the server log has the reason under the X-Request-Id of this response")
}

// orEmpty encodes as [] instead of null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
