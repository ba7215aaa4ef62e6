package login

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

// KeyLogin is the request body of Login.
type KeyLogin struct {
	Key string `json:"key"`
}

// Login handles POST /v1/auth/login. It exchanges the API key for a session cookie.
func (h *Handlers) Login(c *fiber.Ctx, _ core.Caller, r KeyLogin) (any, error) {
	if r.Key == "" {
		return nil, core.Errorf(core.CodeBadRequest, "key is missing; set it to the API key")
	}
	token, err := h.Access.Login(c.UserContext(), r.Key)
	if core.CodeOf(err) == core.CodeUnauthenticated {
		if limited := h.Access.CountWrongKey(h.Guard.ClientAddress(c.Context()), c.Context().RemoteIP().String()); limited != nil {
			err = limited
		}
	}
	if err != nil {
		noteAttempt(c, Attempt{Provider: apiKey, Err: err})
		return nil, err
	}
	noteAttempt(c, Attempt{User: core.Owner().User, Provider: apiKey})
	h.setSessionCookie(c, token, http.SameSiteStrictMode)
	return fiber.Map{"ok": true}, nil
}

// Logout handles POST /v1/auth/logout.
func (h *Handlers) Logout(c *fiber.Ctx, _ core.Caller) (any, error) {
	if token := c.Cookies(authn.SessionCookie); token != "" {
		if err := h.Access.Logout(c.UserContext(), token); err != nil {
			return nil, err
		}
	}
	h.clearSessionCookie(c)
	return fiber.Map{"ok": true}, nil
}

// Session handles GET /v1/auth/session.
func (h *Handlers) Session(_ *fiber.Ctx, caller core.Caller) (any, error) {
	return fiber.Map{"authenticated": true, "user": caller.User}, nil
}

// maxReturnTo is the maximum length of returnTo, which the server stores during a login.
const maxReturnTo = 4 << 10

// Authorize handles GET /v1/auth/authorize. It redirects the browser to the identity provider named by the query
// parameter provider. If that parameter is missing and there are several providers, it sends a page with a link to
// each. The query parameter returnTo is the local path to return to afterwards. The query parameter device is the code
// of a command line to log in instead of the browser.
func (h *Handlers) Authorize(c *fiber.Ctx, _ core.Caller) (any, error) {
	returnTo := c.Query("returnTo", "/")
	if len(returnTo) > maxReturnTo || !core.LocalPath(returnTo) {
		return nil, core.Errorf(core.CodeBadRequest, "returnTo must be a local path, such as /, of at most %d bytes", maxReturnTo)
	}
	provider, device := c.Query("provider"), c.Query("device")
	if provider == "" {
		names, err := h.Access.LoginProviders(c.UserContext())
		if err != nil {
			return nil, err
		}
		if len(names) > 1 {
			query := url.Values{"returnTo": {returnTo}}
			if device != "" {
				query = url.Values{"device": {device}}
			}
			return nil, choose(c, names, query)
		}
	}
	client := h.Guard.ClientAddress(c.Context())
	if err := h.Access.AllowBrowserLogin(client); err != nil {
		return nil, err
	}
	redirect := h.RedirectURI
	if redirect == "" {
		redirect = h.origin(c) + loginCookiePath
	}
	start, err := h.Access.BeginLogin(c.UserContext(), access.LoginRequest{Provider: provider, RedirectURI: redirect, ReturnTo: returnTo, Device: device, Client: client})
	if device != "" && core.CodeOf(err) == core.CodeNotFound {
		return nil, page{Title: "Log in on the command line", Text: []string{err.Error()}, Ask: true}.send(c, fiber.StatusNotFound)
	}
	if err != nil {
		return nil, err
	}
	h.setLoginCookie(c, start.Binding)
	return nil, c.Redirect(start.URL, fiber.StatusFound)
}

// Callback handles GET /v1/auth/callback. The identity provider redirects the browser here.
func (h *Handlers) Callback(c *fiber.Ctx, _ core.Caller) (any, error) {
	done, err := h.Access.FinishLogin(c.UserContext(), access.LoginAnswer{
		State: c.Query("state"), Code: c.Query("code"), Issuer: c.Query("iss"), Binding: c.Cookies(loginCookie), Client: h.Guard.ClientAddress(c.Context()),
	})
	if done.Consent == "" { // if consent is needed, AnswerDevice notes the attempt
		noteAttempt(c, Attempt{User: done.User, Provider: done.Provider, Err: providerError(c, err)})
	}
	h.clearLoginCookie(c)
	if core.CodeOf(err) == core.CodeNotConfigured {
		return nil, err
	}
	if err != nil {
		h.logFailedLogin(c, err)
		return nil, c.Redirect("/?"+url.Values{"error": {"auth_failed"}}.Encode(), fiber.StatusFound)
	}
	if done.Consent != "" {
		return nil, askConsent(c, done)
	}
	h.setSessionCookie(c, done.Token, http.SameSiteLaxMode) // the provider's redirect comes from another site
	return nil, c.Redirect(done.ReturnTo, fiber.StatusFound)
}

// providerError adds the provider's own error to the error of a browser login.
func providerError(c *fiber.Ctx, err error) error {
	providerCode := c.Query("error")
	if err == nil || providerCode == "" {
		return err
	}
	return fmt.Errorf("%w (the provider: %s %s)", err, clip(providerCode), clip(c.Query("error_description")))
}

// logFailedLogin logs why a browser login failed, because the response does not contain the reason.
func (h *Handlers) logFailedLogin(c *fiber.Ctx, err error) {
	reason := err.Error()
	if e, ok := errors.AsType[*core.Error](err); ok {
		reason = httpio.Cause(err, e)
	}
	args := []any{"reason", reason, "request_id", c.GetRespHeader(fiber.HeaderXRequestID)}
	if providerCode := c.Query("error"); providerCode != "" {
		args = append(args, "provider_error", clip(providerCode), "provider_description", clip(c.Query("error_description")))
	}
	h.Log.Warn("browser login failed", args...)
}

// clip shortens a string from the URL, which anyone may have written.
func clip(text string) string {
	const limit = 200
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// BackchannelLogout handles POST /v1/auth/backchannel-logout. The identity provider sends a logout token in a form
// (OpenID Connect Back-Channel Logout 1.0 section 2.5).
func (h *Handlers) BackchannelLogout(c *fiber.Ctx, _ core.Caller) (any, error) {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || kind != fiber.MIMEApplicationForm {
		return nil, core.Errorf(core.CodeUnsupportedMedia, "the Content-Type must be application/x-www-form-urlencoded")
	}
	tokens := c.Context().PostArgs().PeekMulti("logout_token")
	if len(tokens) != 1 {
		return nil, core.Errorf(core.CodeBadRequest, "the form must contain exactly one logout_token")
	}
	if err := h.Access.BackchannelLogout(c.UserContext(), string(tokens[0])); err != nil {
		return nil, err
	}
	return fiber.Map{"ok": true}, nil
}
