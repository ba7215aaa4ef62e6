package httpapi

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
)

type appsAnswer struct {
	Apps []core.App `json:"apps"`
}

// listApps is GET /v1/apps (spec 4.1).
func (s *Server) listApps(c *fiber.Ctx, caller core.Caller) error {
	return c.JSON(appsAnswer{Apps: orEmpty(s.apps.List(caller.Workspace.ID))})
}

// installApp is POST /v1/apps/install (spec 4.2).
func (s *Server) installApp(c *fiber.Ctx, caller core.Caller) error {
	r, err := readBody[apps.InstallRequest](c)
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
	ctx, done := attended(c)
	defer done()
	app, err := s.apps.Install(ctx, caller.Workspace.ID, r)
	if err != nil {
		return named(core.CodeInstallFailed, "the installation failed", err)
	}
	return c.JSON(app)
}

type uninstallAnswer struct {
	Name          string `json:"name"`
	Uninstalled   bool   `json:"uninstalled"`
	DataPreserved bool   `json:"dataPreserved"`
	DataPath      string `json:"dataPath"`
}

// uninstallApp is DELETE /v1/apps/:name (spec 4.3).
func (s *Server) uninstallApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := managedApp(c, caller)
	if err != nil {
		return err
	}
	dataPath, err := s.apps.Uninstall(c.UserContext(), caller.Workspace.ID, name)
	if err != nil {
		return named(core.CodeUninstallFailed, "the app could not be removed", err)
	}
	return c.JSON(uninstallAnswer{Name: name, Uninstalled: true, DataPreserved: true, DataPath: dataPath})
}

type statusAnswer struct {
	Name   string     `json:"name"`
	Status core.State `json:"status"`
}

// startApp is POST /v1/apps/:name/start (spec 4.4).
func (s *Server) startApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := managedApp(c, caller)
	if err != nil {
		return err
	}
	ctx, done := attended(c)
	defer done()
	app, err := s.apps.Start(ctx, caller.Workspace.ID, name)
	if err != nil {
		return named(core.CodeStartFailed, "the app could not be started", err)
	}
	return c.JSON(statusAnswer{Name: app.Name, Status: app.Status})
}

// stopApp is POST /v1/apps/:name/stop (spec 4.5).
func (s *Server) stopApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := managedApp(c, caller)
	if err != nil {
		return err
	}
	app, err := s.apps.Stop(c.UserContext(), caller.Workspace.ID, name)
	if err != nil {
		return named(core.CodeStopFailed, "the app could not be stopped", err)
	}
	return c.JSON(statusAnswer{Name: app.Name, Status: app.Status})
}

// managedApp is the app a request names, once its caller may change it.
func managedApp(c *fiber.Ctx, caller core.Caller) (string, error) {
	name, err := appName(c)
	if err != nil {
		return "", err
	}
	return name, caller.MayManageApps()
}

// appName is the :name of a path. What cannot be a server name names no app.
func appName(c *fiber.Ctx) (string, error) {
	name := c.Params("name")
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return "", core.Errorf(core.CodeNotFound, "no app has such a name; server names are made of a-z, 0-9 and -")
		}
	}
	return name, nil
}

// named gives an error that no room named the code of the verb that failed (spec part 7).
func named(code core.Code, message string, err error) error {
	if _, ok := errors.AsType[*core.Error](err); ok {
		return err
	}
	return core.Wrap(code, err, message+"; the server's log has the reason under this answer's X-Request-Id")
}

// orEmpty makes JSON say [] instead of null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
