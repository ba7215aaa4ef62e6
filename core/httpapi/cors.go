package httpapi

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

// Pages need Mcp-Method and Mcp-Name to speak MCP revision 2026-07-28, WWW-Authenticate to find out
// where to log in, and Retry-After to know when to retry.
const (
	allowedMethods = "GET, POST, PATCH, DELETE, OPTIONS"
	allowedHeaders = "Content-Type, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Workspace-Id"
	exposedHeaders = "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id, WWW-Authenticate, Retry-After"
)

// paramHeader begins the headers in which a call of the revision 2026-07-28 repeats arguments. Tools
// name them (x-mcp-header), so no list has them all, and no wildcard counts where a page sends
// credentials: a preflight is allowed those of them that it asks for.
const paramHeader = "Mcp-Param-"

// cors sets the CORS headers of a response: in dev mode for every origin, else for those in
// ALLOWED_ORIGINS.
func (s *Server) cors(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	switch {
	case s.guard.Dev:
		set(h, fiber.HeaderAccessControlAllowOrigin, "*")
	case len(s.guard.Origins) > 0:
		set(h, fiber.HeaderVary, fiber.HeaderOrigin)
		origin := string(ctx.Request.Header.Peek(fiber.HeaderOrigin))
		if !slices.Contains(s.guard.Origins, origin) {
			return
		}
		h.Set(fiber.HeaderAccessControlAllowOrigin, origin)
		h.Set(fiber.HeaderAccessControlAllowCredentials, "true")
	default:
		return
	}
	set(h, fiber.HeaderAccessControlExposeHeaders, exposedHeaders)
	if ctx.IsOptions() {
		h.Set(fiber.HeaderAccessControlAllowMethods, allowedMethods)
		h.Set(fiber.HeaderAccessControlAllowHeaders, allowedHeaders+paramsAsked(&ctx.Request.Header))
		h.Set(fiber.HeaderAccessControlMaxAge, "600")
	}
}

// paramsAsked continues a list of headers with those that a preflight asks for and that carry arguments.
func paramsAsked(h *fasthttp.RequestHeader) string {
	var list strings.Builder
	for _, asked := range h.PeekAll(fiber.HeaderAccessControlRequestHeaders) {
		for name := range strings.SplitSeq(string(asked), ",") {
			name = strings.Trim(name, " \t")
			if len(name) > len(paramHeader) && strings.EqualFold(name[:len(paramHeader)], paramHeader) && httpguts.ValidHeaderFieldName(name) {
				list.WriteString(", " + name)
			}
		}
	}
	return list.String()
}
