package appapi

import (
	"context"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/stream"
)

const (
	logTail    = 200 // lines returned by default
	maxLogTail = 10_000
)

// Logs handles GET /v1/apps/:name/logs. It returns the last lines. If follow is true, it sends them as events, followed
// by new lines as the app writes them.
func (h *Handlers) Logs(c *fiber.Ctx, caller core.Caller) (any, error) {
	name, err := appName(c)
	if err != nil {
		return nil, err
	}
	tail, err := httpio.QueryInt(c, "tail", logTail, maxLogTail)
	if err != nil {
		return nil, err
	}
	follow, err := httpio.QueryBool(c, "follow")
	if err != nil {
		return nil, err
	}
	if follow {
		return nil, h.followLogs(c, caller, name, tail)
	}
	lines, _, err := h.Apps.Logs(c.UserContext(), caller.Workspace.ID, name, tail, false)
	return fiber.Map{"lines": httpio.OrEmpty(lines)}, err
}

func (h *Handlers) followLogs(c *fiber.Ctx, caller core.Caller, name string, tail int) error {
	if _, err := h.Apps.Details(caller.Workspace.ID, name); err != nil {
		return err
	}
	cred, err := authn.FromRequest(c)
	if err != nil {
		return err
	}
	release, err := h.Limits.Acquire(limits.Streams, caller.User.ID)
	if err != nil {
		return err
	}
	workspace := caller.Workspace.ID
	return h.Streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		ctx, stop := h.Authn.Watch(ctx, cred, caller, func(core.Caller) {})
		defer stop()
		lines, more, err := h.Apps.Logs(ctx, workspace, name, tail, true)
		if err != nil || w.Flush() != nil {
			return
		}
		defer httpio.KeepAlive(w, h.Quiet)()
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
	}, release)
}

func sendLine(w *stream.Writer, line apps.LogLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return w.Event("log", data)
}
