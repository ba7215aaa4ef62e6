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

	// CountBearer counts a refused bearer token. It returns an error if there have been too many.
	CountBearer(bearer, client, peer string) error
	Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error)

	// Current returns a caller who was admitted earlier with the roles they have now, or an error if they no longer
	// have access.
	Current(ctx context.Context, c core.Caller) (core.Caller, error)

	// WatchRevocations calls changed with a user ID, or "" for all users, when the user's rights may have changed.
	WatchRevocations(changed func(userID string)) (stop func())
}

// Authenticator determines who sent a request.
type Authenticator struct {
	Access  Access
	Guard   *webguard.Policy
	Recheck time.Duration // between checks of the credentials of a long-lived stream
}

// Audience defines whose requests a route serves.
type Audience string

// The audiences.
const (
	Anyone   Audience = "anyone"
	Identity Audience = "any authenticated caller"
	// Member is a member of the workspace in X-Workspace-Id, or else of the caller's only or default workspace.
	Member Audience = "member"
	// Viewer is Member for requests by EventSource and iframes: the workspace may also be given as ?workspace=.
	Viewer Audience = "member, workspace also as `?workspace=`"
)

// Admit returns the sender of a request. The caller has no workspace for Identity, and is the zero Caller for Anyone.
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
	c.Context().SetUserValue(callerKey{}, caller) // set here too, for a caller who is refused the workspace
	if audience != Identity {
		caller, err = a.place(c.UserContext(), caller.Identity, cred)
	}
	if err == nil {
		c.Context().SetUserValue(callerKey{}, caller)
	}
	return caller, err
}

// Identify returns the owner of a request's credentials. A rejected bearer token is counted as a guess by the client.
func (a *Authenticator) Identify(ctx context.Context, c *fiber.Ctx, cred Credentials) (core.Identity, error) {
	id, err := a.Access.API(ctx, cred.Bearer, cred.Cookie)
	if cred.Bearer != "" && core.CodeOf(err) == core.CodeUnauthenticated {
		if limited := a.Access.CountBearer(cred.Bearer, a.Guard.ClientAddress(c.Context()), c.Context().RemoteIP().String()); limited != nil {
			err = limited
		}
	}
	return id, err
}

// Caller returns the owner of the credentials, in the workspace that the credentials specify.
func (a *Authenticator) Caller(ctx context.Context, cred Credentials) (core.Caller, error) {
	id, err := a.Access.API(ctx, cred.Bearer, cred.Cookie)
	if err != nil {
		return core.Caller{}, err
	}
	return a.place(ctx, id, cred)
}

func (a *Authenticator) place(ctx context.Context, id core.Identity, cred Credentials) (core.Caller, error) {
	if cred.Workspace != "" && !core.ValidWorkspaceID(cred.Workspace) {
		return core.Caller{}, core.Errorf(core.CodeBadRequest, "the header %s must have the form ws_<alphanumeric>", headerWorkspace)
	}
	return a.Access.Caller(ctx, id, cred.Workspace)
}

type callerKey struct{}

// NoteCaller records who sent a request to a route that identifies the sender itself, for CallerOf.
func NoteCaller(ctx *fasthttp.RequestCtx, caller core.Caller) { ctx.SetUserValue(callerKey{}, caller) }

// CallerOf returns the caller of a request whose handler required one, for the access log and the audit log.
func CallerOf(ctx *fasthttp.RequestCtx) (core.Caller, bool) {
	caller, known := ctx.UserValue(callerKey{}).(core.Caller)
	return caller, known
}
