package authn

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// Access authenticates callers. Its errors are core.Errors.
type Access interface {
	API(ctx context.Context, bearer, cookie string) (core.Identity, error)
	Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error)

	// Current returns a caller of earlier with the roles that it has now, an error when it no longer has access.
	Current(ctx context.Context, c core.Caller) (core.Caller, error)

	// WatchRevocations calls changed, with the id of a user or "" for all, when the user's rights may
	// have changed.
	WatchRevocations(changed func(userID string)) (stop func())
}

// Authenticator wraps handlers with what they require of their caller.
type Authenticator struct {
	Access  Access
	Recheck time.Duration // between two checks of the credentials of a standing stream
}

// AllowAnyone marks a handler that accepts unauthenticated requests.
func (*Authenticator) AllowAnyone(h fiber.Handler) fiber.Handler { return h }

// RequireIdentity wraps a handler that needs an identity.
func (a *Authenticator) RequireIdentity(h func(*fiber.Ctx, core.Identity) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cred, err := FromRequest(c)
		if err != nil {
			return err
		}
		id, err := a.Access.API(c.UserContext(), cred.Bearer, cred.Cookie)
		if err != nil {
			return err
		}
		c.Context().SetUserValue(callerKey{}, core.Caller{Identity: id})
		return h(c, id)
	}
}

// RequireMember wraps a handler that works in one workspace: that of X-Workspace-Id, else the caller's
// only or default one.
func (a *Authenticator) RequireMember(h func(*fiber.Ctx, core.Caller) error) fiber.Handler {
	return a.require(FromRequest, h)
}

// RequireViewer is RequireMember for what EventSource and iframes request: the workspace may also be
// given as ?workspace=.
func (a *Authenticator) RequireViewer(h func(*fiber.Ctx, core.Caller) error) fiber.Handler {
	return a.require(FromViewer, h)
}

func (a *Authenticator) require(read func(*fiber.Ctx) (Credentials, error), h func(*fiber.Ctx, core.Caller) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cred, err := read(c)
		if err != nil {
			return err
		}
		caller, err := a.Caller(c.UserContext(), cred)
		if err != nil {
			return err
		}
		c.Context().SetUserValue(callerKey{}, caller)
		return h(c, caller)
	}
}

// Caller is who the credentials belong to, in the workspace that they name.
func (a *Authenticator) Caller(ctx context.Context, cred Credentials) (core.Caller, error) {
	id, err := a.Access.API(ctx, cred.Bearer, cred.Cookie)
	if err != nil {
		return core.Caller{}, err
	}
	if cred.Workspace != "" && !core.ValidWorkspaceID(cred.Workspace) {
		return core.Caller{}, core.Errorf(core.CodeBadRequest, "the header %s is not of the form ws_<alphanumeric>", headerWorkspace)
	}
	return a.Access.Caller(ctx, id, cred.Workspace)
}

type callerKey struct{}

// CallerOf is the caller of a request whose handler required one, for the access log and the audit log.
func CallerOf(ctx *fasthttp.RequestCtx) (core.Caller, bool) {
	caller, known := ctx.UserValue(callerKey{}).(core.Caller)
	return caller, known
}
