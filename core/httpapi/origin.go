package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
)

// keepOut runs before /v1. In dev mode, where no credential protects anything, it refuses the pages of
// other sites everything, reads and event streams included, and the Host must be one of this machine's (a
// rebound DNS name is not). With authentication it refuses what a page of another site would change with
// the cookie, which browsers send by themselves. They do not send a bearer by themselves, and CORS keeps
// answers from the page.
func (s *Server) keepOut(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	ctx := c.Context()
	if s.guard.Dev && !s.guard.HostAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "the Host is not this machine; name it in http.allowedHosts to accept it")
	}
	if !s.guard.Dev && (ctx.IsGet() || ctx.IsHead() || authn.Bearer(ctx) != "") {
		return c.Next()
	}
	if !s.guard.OriginAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "a page of another site may not do this; http.allowedOrigins (ALLOWED_ORIGINS) names the sites that may")
	}
	return c.Next()
}
