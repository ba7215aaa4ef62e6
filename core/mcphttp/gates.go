package mcphttp

import (
	"bytes"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// gateTimeout is how long one gate may ask somebody else before the answer is 503.
const gateTimeout = 10 * time.Second

// headerWorkspace names the workspace of a request (spec 4.10 rule 1).
const headerWorkspace = "X-Workspace-Id"

// foreign answers a Host or Origin that this endpoint does not serve.
const foreign = "Forbidden: this Host or Origin is not one this server serves"

// serve is every request to /mcp: the gates of contract part 7, top to bottom.
func (e *Endpoint) serve(c *fiber.Ctx) error {
	if e.Closed(c.Context()) {
		return nil
	}
	if !e.admits(c) {
		return c.Status(fiber.StatusForbidden).SendString(foreign)
	}
	identity, err := e.identify(c)
	if err != nil && core.CodeOf(err) == core.CodeUnauthenticated {
		return e.unauthorized(c)
	}
	if err != nil {
		return e.denied(err).send(c)
	}
	if m := c.Method(); m != fiber.MethodPost && m != fiber.MethodGet && m != fiber.MethodDelete {
		c.Set(fiber.HeaderAllow, "GET, POST, DELETE")
		return c.Status(fiber.StatusMethodNotAllowed).SendString("Method Not Allowed")
	}
	body, err := e.readBody(c)
	if err != nil {
		return c.Status(fiber.StatusRequestEntityTooLarge).SendString(err.Error())
	}
	caller, err := e.place(c, identity)
	if err != nil {
		return e.denied(err).send(c)
	}
	switch c.Method() {
	case fiber.MethodPost:
		return e.post(c, caller, body)
	case fiber.MethodGet:
		return e.get(c, caller)
	default:
		return e.delete(c, caller)
	}
}

// Closed answers a request to /mcp while the feature is switched off, and reports whether it did. It
// knows no difference between methods: a preflight finds as little as a call (spec 4.10 rule 5).
func (e *Endpoint) Closed(ctx *fasthttp.RequestCtx) bool {
	if e.o.Features.Enabled(config.FlagMCPServer) || string(ctx.Path()) != "/mcp" {
		return false
	}
	ctx.SetStatusCode(fiber.StatusNotFound)
	ctx.SetBodyString("Not found")
	return true
}

// admits reports whether the request's Host and Origin are ones this endpoint serves.
func (e *Endpoint) admits(c *fiber.Ctx) bool {
	return e.guard.HostAllowed(c.Context()) && e.guard.OriginAllowed(c.Context())
}

// identify is the bearer gate. In dev mode everyone is the owner (spec 5, MCP endpoint, rule 1).
func (e *Endpoint) identify(c *fiber.Ctx) (core.Identity, error) {
	if e.o.Access.Dev() {
		return core.Owner(), nil
	}
	credentials, ok := single(c, fiber.HeaderAuthorization)
	token := webguard.Bearer(credentials)
	if !ok || token == "" {
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "no bearer token")
	}
	ctx := withLazyTimeout(e.root, gateTimeout)
	defer ctx.end()
	return e.o.Access.MCP(ctx, token)
}

// unauthorized is spec 4.10 rule 7, on the wire as contract part 7 writes it.
func (e *Endpoint) unauthorized(c *fiber.Ctx) error {
	c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="`+
		e.guard.Address(c.Context())+`/.well-known/oauth-protected-resource"`)
	c.Status(fiber.StatusUnauthorized)
	return nil
}

// place is the workspace gate: no default is ever chosen (spec 4.10 rule 1).
func (e *Endpoint) place(c *fiber.Ctx, identity core.Identity) (core.Caller, error) {
	workspace, ok := single(c, headerWorkspace)
	if workspace == "" {
		return core.Caller{}, core.Errorf(core.CodeWorkspaceRequired,
			"set the header X-Workspace-Id: ws_... on every request to /mcp; GET /v1/workspace (or GET /v1/bootstrap) lists the ids of your workspaces")
	}
	if !ok || !core.ValidWorkspaceID(workspace) {
		return core.Caller{}, core.Errorf(core.CodeBadRequest,
			"the header X-Workspace-Id is malformed: it is one id of the form ws_<alphanumeric>; GET /v1/workspace (or GET /v1/bootstrap) lists yours")
	}
	ctx := withLazyTimeout(e.root, gateTimeout)
	defer ctx.end()
	return e.o.Access.Caller(ctx, identity, workspace)
}

// single returns a copy of a header's value, and false when it comes more than once: whoever
// reads the other one would decide otherwise.
func single(c *fiber.Ctx, name string) (string, bool) {
	value, ok := rawHeader(c, name)
	return string(value), ok
}

// rawHeader is single without the copy: the value belongs to the request.
func rawHeader(c *fiber.Ctx, name string) ([]byte, bool) {
	return webguard.Single(&c.Request().Header, name)
}

// readBody returns a body that may be kept: a call may outlive the request that carried it. The bytes
// are taken as they came; an encoding of the content is refused later.
func (e *Endpoint) readBody(c *fiber.Ctx) ([]byte, error) {
	body := c.Request().Body()
	if len(body) > e.o.MaxBody {
		return nil, fmt.Errorf("the request body is larger than %d bytes", e.o.MaxBody)
	}
	if e.o.OwnBodies {
		return body, nil
	}
	return bytes.Clone(body), nil
}
