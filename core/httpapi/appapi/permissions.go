package appapi

import (
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

// Permissions handles GET /v1/apps/:name/permissions.
func (h *Handlers) Permissions(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	return h.Apps.Permissions(caller, name)
}

// ChangePermissions handles PATCH /v1/apps/:name/permissions. The change continues if the client disconnects.
func (h *Handlers) ChangePermissions(c *fiber.Ctx, caller core.Caller, change core.PermissionChange) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	result, err := h.Apps.ChangePermissions(c.UserContext(), caller, name, change)
	return result, httpio.WithCode(core.CodeStartFailed, "the permissions could not be changed", err)
}

type traceRequest struct {
	Seconds int `json:"seconds"`
}

// TracePermissions handles POST /v1/apps/:name/permissions/trace.
func (h *Handlers) TracePermissions(c *fiber.Ctx, caller core.Caller, r traceRequest) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	return h.Apps.TracePermissions(c.UserContext(), caller, name, time.Duration(r.Seconds)*time.Second)
}

// forCaller returns an app as a caller sees it. Only callers who may manage apps see its output and the permissions
// that it asks for.
func (h *Handlers) forCaller(caller core.Caller, app core.App) core.App {
	if caller.MayManageApps() != nil {
		return app.ForMember()
	}
	if app.Name != "" {
		app.Permissions = h.Apps.MissingPermissions(caller, app.Name)
	}
	return app
}

// withMissingOf applies forCaller to each app in the result of an import.
func (h *Handlers) withMissingOf(caller core.Caller, result source.ImportResult) source.ImportResult {
	for i, server := range result.Servers {
		if server.App != nil {
			app := h.forCaller(caller, *server.App)
			result.Servers[i].App = &app
		}
	}
	return result
}

// withHints adds hints about what the sandbox hides to the error of a failed start. Only callers who may open the
// sandbox get hints.
func (h *Handlers) withHints(caller core.Caller, name string, err error) error {
	failed, ok := errors.AsType[*core.Error](err)
	if !ok || failed.Code != core.CodeStartFailed {
		return err
	}
	hints := h.Apps.Hints(caller, name)
	if len(hints) == 0 {
		return err
	}
	return core.Wrap(failed.Code, err, failed.Message+"; "+strings.Join(hints, "; ")).WithDetails(failed.Details)
}
