package authn

import (
	"bytes"
	"cmp"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"

	"github.com/ropewalk/ropewalk/core/webguard"
)

// SessionCookie is the name of the cookie set by a login.
const SessionCookie = "service_session"

const headerWorkspace = "X-Workspace-Id"

// Credentials holds what a request says about its sender. The strings are copies and may be kept.
type Credentials struct {
	Bearer    string
	Cookie    string
	Workspace string // X-Workspace-Id, "" if absent

	proven bool // the token may be bound to a proof of possession, which later checks don't have
}

// Anonymous reports whether the request has neither a token nor a cookie.
func (c Credentials) Anonymous() bool { return c.Bearer == "" && c.Cookie == "" }

// FromRequest reads the credentials of a request. It refuses a request that repeats a header, because programs disagree
// about which one applies.
func FromRequest(c *fiber.Ctx) (Credentials, error) {
	for _, name := range []string{fiber.HeaderAuthorization, headerWorkspace} {
		values := c.Context().Request.Header.PeekAll(name)
		empty := len(values) == 1 && len(bytes.TrimSpace(values[0])) == 0
		switch {
		case len(values) > 1:
			return Credentials{}, core.Errorf(core.CodeBadRequest, "the header %s is given more than once", name)
		case empty && name == headerWorkspace:
			return Credentials{}, core.Errorf(core.CodeBadRequest, "the header %s is empty", name)
		case empty: // an empty header does not fall back to the cookie
			return Credentials{}, core.Errorf(core.CodeUnauthenticated, "the header %s is empty", name)
		}
	}
	return Credentials{
		Bearer: Bearer(c.Context()), Cookie: c.Cookies(SessionCookie), Workspace: c.Get(headerWorkspace),
		proven: webguard.RequestOf(c.Context()).HasProof(),
	}, nil
}

// FromViewer is FromRequest for requests by EventSource and iframes, which cannot send headers: the workspace may also
// be given as ?workspace=.
func FromViewer(c *fiber.Ctx) (Credentials, error) {
	cred, err := FromRequest(c)
	if err != nil {
		return Credentials{}, err
	}
	wanted := c.Query("workspace")
	if wanted != "" && cred.Workspace != "" && wanted != cred.Workspace {
		return Credentials{}, core.Errorf(core.CodeBadRequest, "the header %s and the query parameter workspace differ", headerWorkspace)
	}
	if wanted != "" && !core.ValidWorkspaceID(wanted) {
		return Credentials{}, core.Errorf(core.CodeBadRequest, "the query parameter workspace must have the form ws_<alphanumeric>")
	}
	cred.Workspace = cmp.Or(cred.Workspace, wanted)
	return cred, nil
}

// Bearer returns the bearer token of a request, or "" if there is none. A token under the DPoP scheme is accepted too
// if an identity provider checks proofs.
func Bearer(ctx *fasthttp.RequestCtx) string {
	return BearerOf(&ctx.Request.Header, webguard.RequestOf(ctx).BindsTokens())
}

// BearerOf is Bearer for a request's headers. binds reports whether an identity provider checks proofs.
func BearerOf(h *fasthttp.RequestHeader, binds bool) string {
	authorization := string(h.Peek(fasthttp.HeaderAuthorization))
	if token := webguard.Bearer(authorization); token != "" || !binds {
		return token
	}
	return webguard.DPoP(authorization)
}
