package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// Setting is one setting of the configuration and where it comes from. Secrets are redacted.
type Setting struct {
	Path   string `json:"path"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

type settingsResponse struct {
	Settings []Setting `json:"settings"`
}

// ListSettings is GET /v1/config. The configuration is that of the whole server, so it takes an admin of
// the organization.
func (h *Handlers) ListSettings(c *fiber.Ctx, caller core.Caller) error {
	if !caller.User.OrgRole.Admin() {
		return core.Errorf(core.CodeForbidden, "reading the configuration needs the organization role admin or owner")
	}
	return c.JSON(settingsResponse{Settings: respond.OrEmpty(h.Settings())})
}
