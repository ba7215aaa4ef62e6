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

// Pages need Mcp-Method and Mcp-Name to use MCP revision 2026-07-28, WWW-Authenticate to learn where to log in, and
// Retry-After to know when to retry.
const (
	allowedMethods = "GET, POST, PATCH, DELETE, OPTIONS"
	allowedHeaders = "Content-Type, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Workspace-Id"
	exposedHeaders = "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id, WWW-Authenticate, Retry-After"
)

// paramHeader is the prefix of the headers in which a call under revision 2026-07-28 repeats arguments. Tools choose
// the names (x-mcp-header), so no fixed list can be complete, and wildcards do not work if a page sends credentials. A
// preflight response therefore allows those of these headers that the preflight asks for.
const paramHeader = "Mcp-Param-"

// cors sets the CORS headers of a response: for every origin in dev mode, and otherwise for those in ALLOWED_ORIGINS.
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
		h.Set(fiber.HeaderAccessControlAllowHeaders, allowedHeaders+requestedParams(&ctx.Request.Header))
		h.Set(fiber.HeaderAccessControlMaxAge, "600")
	}
}

// requestedParams returns the argument headers that a preflight asks for, each preceded by a comma so that they extend
// a list.
func requestedParams(h *fasthttp.RequestHeader) string {
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

// keepOut runs before the routes of /v1. In dev mode, where no credential protects anything, it refuses every request
// from another site's pages, including reads and event streams. It also requires a Host header that refers to this
// machine, which rules out DNS rebinding. If there is authentication, it only refuses changes that another site's page
// attempts with the session cookie, because browsers attach cookies on their own. They don't attach bearer tokens, and
// CORS hides responses from the page.
func (s *Server) keepOut(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	ctx := c.Context()
	if s.guard.Dev && !s.guard.HostAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "the Host header does not refer to this machine; to accept it, add it to http.allowedHosts")
	}
	if !s.guard.Dev && (ctx.IsGet() || ctx.IsHead() || authn.Bearer(ctx) != "") {
		return c.Next()
	}
	if ctx.IsGet() && s.isAccountPage(ctx) {
		return c.Next()
	}
	if !s.guard.OriginAllowed(ctx) {
		return core.Errorf(core.CodeForbidden, "a page from another site may not do this; to allow the site, add it to http.allowedOrigins (ALLOWED_ORIGINS)")
	}
	return c.Next()
}

// isAccountPage reports whether a person is opening one of the account pages, which other sites link or redirect to. The
// other site cannot see the content of the page.
func (s *Server) isAccountPage(ctx *fasthttp.RequestCtx) bool {
	path, h := string(ctx.Path()), &ctx.Request.Header
	return (path == accounts.LinkPath || path == accounts.CallbackPath) && string(h.Peek("Sec-Fetch-Mode")) == "navigate" && string(h.Peek("Sec-Fetch-Dest")) == "document"
}
