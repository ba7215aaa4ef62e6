package mcphttp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// gateTimeout bounds work other than calls, such as fetching a document or notifying apps.
const gateTimeout = 10 * time.Second

// headerWorkspace contains the workspace of a request.
const headerWorkspace = "X-Workspace-Id"

// foreign is the response to a Host or Origin that this endpoint does not serve.
const foreign = "Forbidden: this server does not serve this Host or Origin"

// serve handles every request to /mcp and to paths under it. A request passes the gates from top to bottom. All work
// for the request uses Fiber's user context, which ends with the endpoint and carries the request's trace.
func (e *Endpoint) serve(c *fiber.Ctx) error {
	if e.RespondIfDisabled(c.Context()) {
		return nil
	}
	if !e.admits(c) {
		return c.Status(fiber.StatusForbidden).SendString(foreign)
	}
	resource, valid := resourceOf(c)
	if !valid {
		return c.Status(fiber.StatusNotFound).SendString("Not found")
	}
	info := webguard.RequestOf(c.Context())
	info.SetRoute(c.Route().Path)
	c.SetUserContext(info.In(e.root))
	identity, err := e.identify(c, resource)
	if err != nil && core.CodeOf(err) == core.CodeUnauthenticated {
		return e.unauthorized(c)
	}
	if err != nil {
		return e.denied(err).send(c)
	}
	info.SetCaller(core.Caller{Identity: identity})
	if missing := e.missingScopes(identity); missing != "" {
		return e.insufficientScope(c, missing)
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
	info.SetCaller(caller)
	defer e.recheck(caller, c.Context().Time())
	switch c.Method() {
	case fiber.MethodPost:
		return e.post(c, caller, body)
	case fiber.MethodGet:
		return e.get(c, caller)
	default:
		return e.delete(c, caller)
	}
}

// RespondIfDisabled responds to a request to /mcp with 404 while the feature is switched off, and reports whether it
// did. It treats all methods alike, including preflights.
func (e *Endpoint) RespondIfDisabled(ctx *fasthttp.RequestCtx) bool {
	if e.o.Features.Enabled(config.FlagMCPServer) || !isEndpoint(string(ctx.Path())) {
		return false
	}
	ctx.SetStatusCode(fiber.StatusNotFound)
	ctx.SetBodyString("Not found")
	return true
}

// admits reports whether this endpoint serves the request's Host and Origin.
func (e *Endpoint) admits(c *fiber.Ctx) bool {
	return e.guard.HostAllowed(c.Context()) && e.guard.OriginAllowed(c.Context())
}

// identify is the bearer gate. In dev mode everyone is the owner.
func (e *Endpoint) identify(c *fiber.Ctx, resource string) (core.Identity, error) {
	if e.o.Access.Dev() {
		return core.Owner(), nil
	}
	credentials, ok := single(c, fiber.HeaderAuthorization)
	token := webguard.Bearer(credentials)
	if token == "" && webguard.RequestOf(c.Context()).BindsTokens() {
		token = webguard.DPoP(credentials)
	}
	if !ok || token == "" {
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "no bearer token")
	}
	return e.o.Access.MCP(c.UserContext(), token, resource)
}

// isEndpoint reports whether a path is /mcp or under it.
func isEndpoint(path string) bool {
	return path == "/mcp" || strings.HasPrefix(path, "/mcp/")
}

// resourceMe is the path segment that stands for the caller's only or default workspace.
const resourceMe = "me"

// resourceOf returns the resource under /mcp in a request's path: a workspace, or one of its views as ws_.../v/NAME. It
// returns "" for /mcp itself. valid is false if no workspace or view can have that name.
func resourceOf(c *fiber.Ctx) (resource string, valid bool) {
	workspace, name := strings.Clone(c.Params("workspace")), strings.Clone(c.Params("view"))
	switch {
	case workspace == "":
		return "", true
	case workspace != resourceMe && !core.ValidWorkspaceID(workspace):
		return "", false
	case strings.Contains(c.Route().Path, "/v/"):
		return workspace + "/v/" + name, view.ValidName(name)
	}
	return workspace, true
}

// howToAuthorize is a message for people. Clients read WWW-Authenticate instead.
const howToAuthorize = "Authorization required: send a token from this server's identity provider, or an API key (`ropewalk key create NAME`), as a bearer token. " +
	"The instance key (SERVICE_API_KEY) is for /v1 only."

// unauthorized responds with 401 and the address where a client can learn how to get a token (RFC 9728 section 5.1).
func (e *Endpoint) unauthorized(c *fiber.Ctx) error {
	challenge := `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + e.metadataURL(c) + `"`
	if scopes := e.documents.scopes(c.UserContext(), e.o.Scopes()); len(scopes) > 0 {
		challenge += `, scope="` + strings.Join(scopes, " ") + `"`
	}
	c.Set(fiber.HeaderWWWAuthenticate, challenge)
	return (&fault{status: fiber.StatusUnauthorized, code: codeServer, message: howToAuthorize}).send(c)
}

// metadataURL returns the URL of the RFC 9728 document of the requested resource. For /mcp it is the server's own.
func (e *Endpoint) metadataURL(c *fiber.Ctx) string {
	url := e.guard.Address(c.Context()) + protectedResourcePath
	if resource, _ := resourceOf(c); resource != "" {
		url += "/mcp/" + resource
	}
	return url
}

// place returns the caller in the workspace given in the path, or else in the one given in the header. It never chooses
// a default for /mcp. The caller gets the view given in the path.
func (e *Endpoint) place(c *fiber.Ctx, identity core.Identity) (core.Caller, error) {
	resource := c.Params("workspace")
	header, ok := rawHeader(c, headerWorkspace)
	workspace := string(header)
	if header == nil && resource == "" {
		return core.Caller{}, core.Errorf(core.CodeWorkspaceRequired,
			"specify the workspace: set the header X-Workspace-Id: ws_... on every request to /mcp, or use the address /mcp/ws_..., or /mcp/me for your only or default one; "+
				"GET /v1/workspace (or GET /v1/bootstrap) lists the ids of your workspaces")
	}
	if !ok || header != nil && !core.ValidWorkspaceID(workspace) {
		return core.Caller{}, core.Errorf(core.CodeBadRequest,
			"the header X-Workspace-Id is malformed; send one id of the form ws_<alphanumeric>; GET /v1/workspace (or GET /v1/bootstrap) lists yours")
	}
	named := workspace
	switch resource {
	case "":
	case resourceMe:
		named = ""
	default:
		named = strings.Clone(resource)
	}
	caller, err := e.o.Access.Caller(c.UserContext(), identity, named)
	if err == nil && workspace != "" && workspace != caller.Workspace.ID {
		return core.Caller{}, core.Errorf(core.CodeBadRequest, "the header X-Workspace-Id specifies a different workspace from the address; omit the header")
	}
	caller.View = strings.Clone(c.Params("view"))
	if err == nil && caller.View != "" && (e.o.Views == nil || !e.o.Views.Has(caller.Workspace.ID, caller.View)) {
		return core.Caller{}, core.Errorf(core.CodeNotFound, "there is no view %q in this workspace", caller.View)
	}
	return caller, err
}

// single returns a copy of a header's value, and false if the header is repeated, because intermediaries may read a
// different value of a repeated header.
func single(c *fiber.Ctx, name string) (string, bool) {
	value, ok := rawHeader(c, name)
	return string(value), ok
}

// rawHeader is like single, but does not copy the value, which is valid only during the request.
func rawHeader(c *fiber.Ctx, name string) ([]byte, bool) {
	return webguard.Single(&c.Request().Header, name)
}

// readBody returns a body that may be kept, because a call may outlive the request that carried it. The bytes are
// returned as received; content encodings are refused later.
func (e *Endpoint) readBody(c *fiber.Ctx) ([]byte, error) {
	body := c.Request().Body()
	if len(body) > e.o.MaxBody {
		return nil, fmt.Errorf("the request body is larger than %d bytes", e.o.MaxBody)
	}
	if e.o.OwnBodies {
		c.Request().SetBodyRaw(nil) // from now on, only the messages keep the body alive
		return body, nil
	}
	return bytes.Clone(body), nil
}

// identityScopes returns the scopes that only give information about the user. A token does not need them.
func identityScopes() []string { return []string{"openid", "profile", "email", "offline_access"} }

// missingScopes returns the scopes that the configuration requires and a token was not granted, separated by spaces. It
// returns "" for API keys and for tokens that list no scopes.
func (e *Endpoint) missingScopes(id core.Identity) string {
	if id.Granted == "" || len(e.o.Scopes()) == 0 {
		return ""
	}
	granted := strings.Fields(id.Granted)
	var missing []string
	for _, scope := range e.o.Scopes() {
		if !slices.Contains(granted, scope) && !slices.Contains(identityScopes(), scope) {
			missing = append(missing, scope)
		}
	}
	return strings.Join(missing, " ")
}

// insufficientScope responds with 403 and asks for a token with more scopes (RFC 6750 section 3.1).
func (e *Endpoint) insufficientScope(c *fiber.Ctx, missing string) error {
	c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="insufficient_scope", error_description="The token lacks a scope", scope="`+
		strings.Join(e.o.Scopes(), " ")+`", resource_metadata="`+e.metadataURL(c)+`"`)
	return (&fault{
		status: fiber.StatusForbidden, code: codeServer, message: "the token lacks the scope " + missing, data: encode(map[string]any{"error": core.CodeForbidden}),
	}).send(c)
}
