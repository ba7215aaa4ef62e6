package httpapi

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/accounts"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
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
	if ctx.IsGet() && s.isVisited(ctx) {
		return c.Next()
	}
	if !s.guard.OriginAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "a page of another site may not do this; http.allowedOrigins (ALLOWED_ORIGINS) names the sites that may")
	}
	return c.Next()
}

// isVisited reports whether a person opens a page that other sites lead to: with a link, or with the redirect of an
// authorization server. No page of another site sees what is in it.
func (s *Server) isVisited(ctx *fasthttp.RequestCtx) bool {
	path, h := string(ctx.Path()), &ctx.Request.Header
	return (path == accounts.LinkPath || path == accounts.CallbackPath) && string(h.Peek("Sec-Fetch-Mode")) == "navigate" && string(h.Peek("Sec-Fetch-Dest")) == "document"
}
