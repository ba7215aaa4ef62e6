package httpapi

import (
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// The lists of contract part 1. Mcp-Method and Mcp-Name are beside them: without those two a page
// cannot speak the revision 2026-07-28, which asks for them.
const (
	allowedMethods = "GET, POST, PATCH, DELETE, OPTIONS"
	allowedHeaders = "Content-Type, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Workspace-Id"
	exposedHeaders = "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id"
)

// cors sets the CORS headers of an answer, by the cases of spec part 1: in dev mode for everyone,
// with ALLOWED_ORIGINS for those listed, else for nobody.
func (o origins) cors(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	switch {
	case o.dev:
		h.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	case len(o.allowed) > 0:
		h.Set(fiber.HeaderVary, fiber.HeaderOrigin)
		origin := string(ctx.Request.Header.Peek(fiber.HeaderOrigin))
		if !slices.Contains(o.allowed, origin) {
			return
		}
		h.Set(fiber.HeaderAccessControlAllowOrigin, origin)
		h.Set(fiber.HeaderAccessControlAllowCredentials, "true")
	default:
		return
	}
	h.Set(fiber.HeaderAccessControlExposeHeaders, exposedHeaders)
	if ctx.IsOptions() {
		h.Set(fiber.HeaderAccessControlAllowMethods, allowedMethods)
		h.Set(fiber.HeaderAccessControlAllowHeaders, allowedHeaders)
		h.Set(fiber.HeaderAccessControlMaxAge, "600")
	}
}
