package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// keepOut runs before /v1. In dev mode, where nobody proves anything, it keeps other sites'
// pages from acting: the Host must be one of this machine's (a rebound DNS name is not), and what
// changes state must come from this machine's pages. With authentication it does the same for
// whatever a browser sends by itself, the cookie: a bearer is never sent by accident.
func (s *Server) keepOut(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	ctx := c.Context()
	if s.guard.Dev && !s.guard.HostAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "the Host is not this machine; name it in http.allowedHosts to accept it")
	}
	if ctx.IsGet() || ctx.IsHead() || (!s.guard.Dev && bearerOf(c) != "") {
		return c.Next()
	}
	if !s.guard.OriginAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "a page of another site may not do this; ALLOWED_ORIGINS names the sites that may")
	}
	return c.Next()
}
