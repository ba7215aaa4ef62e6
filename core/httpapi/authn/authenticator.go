package authn

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// Access authenticates callers. Its errors are core.Errors.
type Access interface {
	API(ctx context.Context, bearer, cookie string) (core.Identity, error)

	// CountBearer counts a bearer that was refused, and returns an error when there were too many.
	CountBearer(bearer, client, peer string) error
	Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error)

	// Current returns a caller of earlier with the roles that it has now, an error when it no longer has access.
	Current(ctx context.Context, c core.Caller) (core.Caller, error)

	// WatchRevocations calls changed, with the id of a user or "" for all, when the user's rights may
	// have changed.
	WatchRevocations(changed func(userID string)) (stop func())
}

// Authenticator finds out who sends a request.
type Authenticator struct {
	Access  Access
	Guard   *webguard.Policy
	Recheck time.Duration // between two checks of the credentials of a standing stream
}

// Audience is whose requests a route serves.
type Audience string

// The audiences.
const (
	Anyone   Audience = "anyone"
	Identity Audience = "any authenticated caller"
	// Member is a member of the workspace that X-Workspace-Id names, else of the caller's only or default one.
	Member Audience = "member"
	// Viewer is Member for what EventSource and iframes request: the workspace may also be given as ?workspace=.
	Viewer Audience = "member, workspace also as `?workspace=`"
)

// Admit returns the sender of a request, without a workspace for Identity, and without anything for Anyone.
func (a *Authenticator) Admit(c *fiber.Ctx, audience Audience) (caller core.Caller, err error) {
	if audience == Anyone {
		return core.Caller{}, nil
	}
	read := FromRequest
	if audience == Viewer {
		read = FromViewer
	}
	cred, err := read(c)
	if err != nil {
		return core.Caller{}, err
	}
	if caller.Identity, err = a.Identify(c.UserContext(), c, cred); err != nil {
		return core.Caller{}, err
	}
	c.Context().SetUserValue(callerKey{}, caller) // also of one who is refused a workspace
	if audience != Identity {
		caller, err = a.place(c.UserContext(), caller.Identity, cred)
	}
	if err == nil {
		c.Context().SetUserValue(callerKey{}, caller)
	}
	return caller, err
}

// Identify returns who the credentials of a request belong to. A bearer that is refused counts among the guesses of its
// client.
func (a *Authenticator) Identify(ctx context.Context, c *fiber.Ctx, cred Credentials) (core.Identity, error) {
	id, err := a.Access.API(ctx, cred.Bearer, cred.Cookie)
	if cred.Bearer != "" && core.CodeOf(err) == core.CodeUnauthenticated {
		if limited := a.Access.CountBearer(cred.Bearer, a.Guard.ClientAddress(c.Context()), c.Context().RemoteIP().String()); limited != nil {
			err = limited
		}
	}
	return id, err
}

// Caller is who the credentials belong to, in the workspace that they name.
func (a *Authenticator) Caller(ctx context.Context, cred Credentials) (core.Caller, error) {
	id, err := a.Access.API(ctx, cred.Bearer, cred.Cookie)
	if err != nil {
		return core.Caller{}, err
	}
	return a.place(ctx, id, cred)
}

func (a *Authenticator) place(ctx context.Context, id core.Identity, cred Credentials) (core.Caller, error) {
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
