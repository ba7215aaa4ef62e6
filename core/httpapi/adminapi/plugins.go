package adminapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// Plugin is how one adapter of this server is, a built-in one or a plugin of its own.
type Plugin struct {
	Kind       string    `json:"kind"`
	Name       string    `json:"name"` // the registry's name, else the adapter's
	Adapter    string    `json:"adapter"`
	Version    string    `json:"version"`
	State      string    `json:"state"`      // running, restarting, in-process
	Generation int       `json:"generation"` // which process of it this is, from 1
	Since      time.Time `json:"since"`      // start of the present generation
	Degraded   bool      `json:"degraded"`   // it answers, but most of its last calls failed or were slow
	Protocol   int       `json:"protocolVersion,omitempty"`
	Calls      uint64    `json:"calls"`
	Errors     uint64    `json:"errors"`
	LastError  string    `json:"lastError,omitempty"` // why the generation before ended
}

type pluginsResponse struct {
	Plugins []Plugin `json:"plugins"`
}

// ListPlugins is GET /v1/plugins. The plugins serve all workspaces, so it takes an admin of the organization.
func (h *Handlers) ListPlugins(c *fiber.Ctx, caller core.Caller) error {
	if !caller.User.OrgRole.Admin() {
		return core.Errorf(core.CodeForbidden, "reading the state of the plugins needs the organization role admin or owner")
	}
	return c.JSON(pluginsResponse{Plugins: respond.OrEmpty(h.Plugins())})
}
