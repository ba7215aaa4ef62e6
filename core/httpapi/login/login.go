package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

type loginRequest struct {
	Key string `json:"key"`
}

type okResponse struct {
	OK bool `json:"ok"`
}

// Login is POST /v1/auth/login: it exchanges the API key for a session cookie.
func (h *Handlers) Login(c *fiber.Ctx) error {
	r, err := body.Read[loginRequest](c.Context())
	if err != nil {
		return err
	}
	if r.Key == "" {
		return core.Errorf(core.CodeBadRequest, "key is missing; send the API key")
	}
	if err := h.Access.AllowLogin(h.Guard.ClientAddress(c.Context())); err != nil {
		return err
	}
	token, err := h.Access.Login(c.UserContext(), r.Key)
	if err != nil {
		return err
	}
	h.setSessionCookie(c, token, http.SameSiteStrictMode)
	return c.JSON(okResponse{OK: true})
}

// Logout is POST /v1/auth/logout.
func (h *Handlers) Logout(c *fiber.Ctx, _ core.Identity) error {
	if token := c.Cookies(authn.SessionCookie); token != "" {
		if err := h.Access.Logout(c.UserContext(), token); err != nil {
			return err
		}
	}
	h.clearSessionCookie(c)
	return c.JSON(okResponse{OK: true})
}

type sessionAnswer struct {
	Authenticated bool      `json:"authenticated"`
	User          core.User `json:"user"`
}

// Session is GET /v1/auth/session.
func (h *Handlers) Session(c *fiber.Ctx, id core.Identity) error {
	return c.JSON(sessionAnswer{Authenticated: true, User: id.User})
}

// Authorize is GET /v1/auth/authorize: it redirects the browser to the identity provider that the query
// parameter provider names. Without it and with several, it is a page with a link to each. The query
// parameter returnTo is the local path to return to afterwards.
func (h *Handlers) Authorize(c *fiber.Ctx) error {
	returnTo := c.Query("returnTo", "/")
	if !localPath(returnTo) {
		return core.Errorf(core.CodeBadRequest, "returnTo must be a local path, such as /")
	}
	provider := c.Query("provider")
	if provider == "" {
		names, err := h.Access.LoginProviders(c.UserContext())
		if err != nil {
			return err
		}
		if len(names) > 1 {
			return choose(c, names, returnTo)
		}
	}
	if err := h.Access.AllowBrowserLogin(h.Guard.ClientAddress(c.Context())); err != nil {
		return err
	}
	redirect := h.RedirectURI
	if redirect == "" {
		redirect = h.Guard.Scheme(c.Context()) + "://" + string(c.Context().Host()) + loginCookiePath
	}
	start, err := h.Access.BeginLogin(c.UserContext(), provider, redirect, returnTo)
	if err != nil {
		return err
	}
	h.setLoginCookie(c, start.Binding)
	return c.Redirect(start.URL, fiber.StatusFound)
}

// Callback is GET /v1/auth/callback: the identity provider redirects the browser here.
func (h *Handlers) Callback(c *fiber.Ctx) error {
	token, returnTo, err := h.Access.FinishLogin(c.UserContext(), access.LoginAnswer{
		State: c.Query("state"), Code: c.Query("code"), Issuer: c.Query("iss"), Binding: c.Cookies(loginCookie),
	})
	h.clearLoginCookie(c)
	if core.CodeOf(err) == core.CodeNotConfigured {
		return err
	}
	if err != nil {
		h.logFailedLogin(c, err)
		return c.Redirect("/?"+url.Values{"error": {"auth_failed"}}.Encode(), fiber.StatusFound)
	}
	h.setSessionCookie(c, token, http.SameSiteLaxMode) // the provider's redirect comes from another site
	if !localPath(returnTo) {
		returnTo = "/"
	}
	return c.Redirect(returnTo, fiber.StatusFound)
}

// logFailedLogin logs why a browser login failed: the browser gets no reason.
func (h *Handlers) logFailedLogin(c *fiber.Ctx, err error) {
	reason := err.Error()
	if e, ok := errors.AsType[*core.Error](err); ok {
		reason = respond.Cause(err, e)
	}
	args := []any{"reason", reason, "request_id", c.GetRespHeader(fiber.HeaderXRequestID)}
	if said := c.Query("error"); said != "" {
		args = append(args, "provider_error", clip(said), "provider_description", clip(c.Query("error_description")))
	}
	h.Log.Warn("browser login failed", args...)
}

// clip bounds a text that anybody may have put into the address.
func clip(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// localPath reports whether a browser reads p as a path of this server: //host and /\host are not.
func localPath(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.HasPrefix(p, `/\`) {
		return false
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
}
