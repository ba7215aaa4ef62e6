package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/stream"
)

// getApp is GET /v1/apps/:name.
func (s *Server) getApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := appName(c)
	if err != nil {
		return err
	}
	details, err := s.apps.Details(caller.Workspace.ID, name)
	if err != nil {
		return err
	}
	if caller.MayManageApps() != nil {
		details = details.ForMember()
	}
	return c.JSON(details)
}

// updateAppSettings is PATCH /v1/apps/:name.
func (s *Server) updateAppSettings(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	r, err := body.Read[apps.Settings](c.Context())
	if err != nil {
		return err
	}
	ctx, done := cancelOnDisconnect(c)
	defer done()
	app, err := s.apps.Configure(ctx, caller.Workspace.ID, name, r)
	if err != nil {
		return withCode(core.CodeStartFailed, "the app could not be configured", err)
	}
	return c.JSON(app)
}

// restartApp is POST /v1/apps/:name/restart.
func (s *Server) restartApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	ctx, done := cancelOnDisconnect(c)
	defer done()
	app, err := s.apps.Restart(ctx, caller.Workspace.ID, name)
	if err != nil {
		return withCode(core.CodeStartFailed, "the app could not be restarted", err)
	}
	return c.JSON(statusResponse{Name: app.Name, Status: app.Status})
}

type updateRequest struct {
	Version string `json:"version"` // "" for the newest
}

// updateApp is POST /v1/apps/:name/update. Without a body it updates to the newest version.
func (s *Server) updateApp(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	var r updateRequest
	if len(c.Context().PostBody()) > 0 {
		if r, err = body.Read[updateRequest](c.Context()); err != nil {
			return err
		}
	}
	ctx, done := cancelOnDisconnect(c)
	defer done()
	app, err := s.apps.Update(ctx, caller.Workspace.ID, name, r.Version)
	if err != nil {
		return withCode(core.CodeInstallFailed, "the app could not be updated", err)
	}
	return c.JSON(app)
}

const (
	logTail    = 200 // lines, unless the client says how many
	maxLogTail = 10_000
)

type logsResponse struct {
	Lines []apps.LogLine `json:"lines"`
}

// getAppLogs is GET /v1/apps/:name/logs: the last lines, and with follow the ones that are written from
// then on, as events.
func (s *Server) getAppLogs(c *fiber.Ctx, caller core.Caller) error {
	name, err := appToManage(c, caller)
	if err != nil {
		return err
	}
	tail, err := queryInt(c, "tail", logTail, maxLogTail)
	if err != nil {
		return err
	}
	if c.Query("follow") == "true" {
		return s.followAppLogs(c, caller, name, tail)
	}
	lines, _, err := s.apps.Logs(c.UserContext(), caller.Workspace.ID, name, tail, false)
	if err != nil {
		return err
	}
	return c.JSON(logsResponse{Lines: orEmpty(lines)})
}

func (s *Server) followAppLogs(c *fiber.Ctx, caller core.Caller, name string, tail int) error {
	if _, err := s.apps.Details(caller.Workspace.ID, name); err != nil {
		return err
	}
	workspace := caller.Workspace.ID
	return s.streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		lines, more, err := s.apps.Logs(ctx, workspace, name, tail, true)
		if err != nil || w.Flush() != nil {
			return
		}
		defer keepAlive(w, s.options.Timeouts.Quiet)()
		for _, line := range lines {
			if sendLine(w, line) != nil {
				return
			}
		}
		for line := range more {
			if sendLine(w, line) != nil {
				return
			}
		}
	})
}

func sendLine(w *stream.Writer, line apps.LogLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return w.Event("log", data)
}

// uploadApp is POST /v1/apps/upload: the body is an .mcpb file.
func (s *Server) uploadApp(c *fiber.Ctx, caller core.Caller) error {
	if err := caller.MayInstall(core.SourcePath); err != nil {
		return err
	}
	ctx, done := cancelOnDisconnect(c)
	defer done()
	app, err := s.apps.InstallUpload(ctx, caller.Workspace.ID, uploadOf(c), source.Request{
		ServerName: c.Query("serverName"), AllowPrivate: caller.MayReachPrivate(),
	})
	if err != nil {
		return withCode(core.CodeInstallFailed, "the installation failed", err)
	}
	return c.JSON(app)
}

func uploadOf(c *fiber.Ctx) io.Reader { return bytes.NewReader(c.Context().PostBody()) }

// importApps is POST /v1/apps/import: the mcpServers object of an MCP client.
func (s *Server) importApps(c *fiber.Ctx, caller core.Caller) error {
	if err := caller.MayManageApps(); err != nil {
		return err
	}
	r, err := body.Read[source.ImportRequest](c.Context())
	if err != nil {
		return err
	}
	r.AllowPrivate, r.Allowed = caller.MayReachPrivate(), caller.MayInstall
	ctx, done := cancelOnDisconnect(c)
	defer done()
	result, err := s.apps.Import(ctx, caller.Workspace.ID, r)
	if err != nil {
		return withCode(core.CodeInstallFailed, "the import failed", err)
	}
	return c.JSON(result)
}
