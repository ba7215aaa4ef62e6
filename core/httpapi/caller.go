package httpapi

import (
	"cmp"
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/webguard"
)

const headerWorkspace = "X-Workspace-Id"

// credentials are what a request says about its sender. They are copies that may be kept.
type credentials struct {
	bearer    string
	cookie    string
	workspace string // X-Workspace-Id, "" when absent
}

func (c credentials) anonymous() bool { return c.bearer == "" && c.cookie == "" }

// credentialsOf reads the credentials of a request. It refuses one that gives a header twice, because
// two programs might use different ones.
func credentialsOf(c *fiber.Ctx) (credentials, error) {
	for _, name := range []string{fiber.HeaderAuthorization, headerWorkspace} {
		if len(c.Context().Request.Header.PeekAll(name)) > 1 {
			return credentials{}, core.Errorf(core.CodeBadRequest, "the header %s is given more than once", name)
		}
	}
	return credentials{bearer: bearerOf(c), cookie: c.Cookies(sessionCookie), workspace: c.Get(headerWorkspace)}, nil
}

func bearerOf(c *fiber.Ctx) string { return webguard.Bearer(c.Get(fiber.HeaderAuthorization)) }

// allowAnyone marks a handler that accepts unauthenticated requests.
func (s *Server) allowAnyone(h fiber.Handler) fiber.Handler { return h }

// requireIdentity wraps a handler that needs an identity.
func (s *Server) requireIdentity(h func(*fiber.Ctx, core.Identity) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cred, err := credentialsOf(c)
		if err != nil {
			return err
		}
		id, err := s.access.API(c.UserContext(), cred.bearer, cred.cookie)
		if err != nil {
			return err
		}
		c.Locals(localActor, id.User.ID)
		return h(c, id)
	}
}

// requireMember wraps a handler that works in one workspace: that of X-Workspace-Id, else the caller's
// only or default one.
func (s *Server) requireMember(h func(*fiber.Ctx, core.Caller) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cred, err := credentialsOf(c)
		if err != nil {
			return err
		}
		caller, err := s.caller(c.UserContext(), cred)
		if err != nil {
			return err
		}
		c.Locals(localActor, caller.User.ID)
		c.Locals(localWorkspace, caller.Workspace.ID)
		if s.options.AccessLog {
			c.Context().SetUserValue(callerKey{}, caller)
		}
		return h(c, caller)
	}
}

// requireViewer is requireMember for what EventSource and iframes request, which cannot send headers:
// the workspace may also be given as ?workspace=.
func (s *Server) requireViewer(h func(*fiber.Ctx, core.Caller) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cred, err := viewerCredentials(c)
		if err != nil {
			return err
		}
		caller, err := s.caller(c.UserContext(), cred)
		if err != nil {
			return err
		}
		if s.options.AccessLog {
			c.Context().SetUserValue(callerKey{}, caller)
		}
		return h(c, caller)
	}
}

func viewerCredentials(c *fiber.Ctx) (credentials, error) {
	cred, err := credentialsOf(c)
	if err != nil {
		return credentials{}, err
	}
	asked := c.Query("workspace")
	if asked != "" && cred.workspace != "" && asked != cred.workspace {
		return credentials{}, core.Errorf(core.CodeBadRequest, "the header %s and the query parameter workspace differ", headerWorkspace)
	}
	cred.workspace = cmp.Or(cred.workspace, asked)
	return cred, nil
}

func (s *Server) caller(ctx context.Context, cred credentials) (core.Caller, error) {
	id, err := s.access.API(ctx, cred.bearer, cred.cookie)
	if err != nil {
		return core.Caller{}, err
	}
	if cred.workspace != "" && !core.ValidWorkspaceID(cred.workspace) {
		return core.Caller{}, core.Errorf(core.CodeBadRequest, "the header %s is not of the form ws_<alphanumeric>", headerWorkspace)
	}
	return s.access.Caller(ctx, id, cred.workspace)
}
