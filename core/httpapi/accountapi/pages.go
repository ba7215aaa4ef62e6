package accountapi

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/accounts"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
	"github.com/ropewalk/ropewalk/core/webguard"
)

//go:embed page.html
var pageHTML string

const (
	// bindingCookie ties a login to its browser.
	bindingCookie = "service_account"
	bindingAge    = 600 // seconds

	// paramAgreed contains the digest of the consent that the page showed.
	paramAgreed = "agreed"

	// paramAgain marks a request that the page itself triggered. The browser sends the session cookie with such a request,
	// even if it withheld the cookie when another site led to the page.
	paramAgain = "again"
)

// page is the data for the template, which shows whichever field is set.
type page struct {
	Reload  string            // the address to reload immediately
	Login   string            // the address of the login page
	Ask     *accounts.Consent // what to agree to
	Agree   string            // the address to post the agreement to
	Linked  *core.Account
	Problem string
}

// Page handles GET /v1/accounts/link. It explains to a person what linking an account means.
func (h *Handlers) Page(c *fiber.Ctx, _ core.Caller) (any, error) {
	caller, w, ok, err := h.person(c)
	if err != nil || !ok {
		return nil, h.orProblem(c, err)
	}
	consent, err := h.Accounts.Prepare(c.UserContext(), caller, w)
	if err != nil {
		return nil, h.orProblem(c, err)
	}
	agree := hereWith(c, paramAgreed, consent.Digest())
	return nil, h.show(c, fiber.StatusOK, page{Ask: &consent, Agree: agree.String()}, consent.Authorize)
}

// Agree handles POST /v1/accounts/link. The person has agreed, so it redirects the browser to the authorization server.
func (h *Handlers) Agree(c *fiber.Ctx, _ core.Caller) (any, error) {
	caller, w, ok, err := h.person(c)
	if err != nil || !ok {
		return nil, h.orProblem(c, err)
	}
	if err := h.Access.AllowBrowserLogin(h.Guard.ClientAddress(c.Context())); err != nil {
		return nil, h.orProblem(c, err)
	}
	start, err := h.Accounts.Begin(c.UserContext(), caller, w, h.base(c)+accounts.CallbackPath)
	if err != nil {
		return nil, h.orProblem(c, err)
	}
	h.setBinding(c, start.Binding, bindingAge)
	return nil, c.Redirect(start.URL, fiber.StatusSeeOther)
}

// Callback handles GET /v1/accounts/callback: the authorization server redirects the browser here.
func (h *Handlers) Callback(c *fiber.Ctx, _ core.Caller) (any, error) {
	id, ok, err := h.identify(c)
	if err != nil || !ok {
		return nil, h.orProblem(c, err)
	}
	caller := func(ctx context.Context, workspace string) (core.Caller, error) {
		caller, err := h.Authn.Access.Caller(ctx, id, workspace)
		if err == nil {
			authn.NoteCaller(c.Context(), caller)
		}
		return caller, err
	}
	authn.NoteCaller(c.Context(), core.Caller{Identity: id})
	a, retry, err := h.Accounts.Finish(c.UserContext(), caller, accounts.Response{
		State: c.Query("state"), Code: c.Query("code"), Issuer: c.Query("iss"), Error: c.Query("error"), Binding: c.Cookies(bindingCookie),
		Mark: c.Query(accounts.MarkParameter),
	})
	if err == nil && retry.URL != "" {
		h.setBinding(c, retry.Binding, bindingAge)
		return nil, c.Redirect(retry.URL, fiber.StatusSeeOther)
	}
	h.setBinding(c, "", -1)
	if err != nil {
		return nil, h.orProblem(c, err)
	}
	c.Locals(httpio.AuditTarget{}, a.App)
	return nil, h.show(c, fiber.StatusOK, page{Linked: &a}, "")
}

// person returns the caller who opened the page, in the workspace given in the address, and the account to link. ok is
// false if person has already sent a response.
func (h *Handlers) person(c *fiber.Ctx) (caller core.Caller, w accounts.Want, ok bool, err error) {
	w = accounts.Want{App: c.Query("app"), Name: c.Query("account"), Scopes: validScopes(c.Query("scope")), Agreed: c.Query(paramAgreed)}
	c.Locals(httpio.AuditTarget{}, clipped(w.App))
	id, ok, err := h.identify(c)
	if err != nil || !ok {
		return caller, w, ok, err
	}
	authn.NoteCaller(c.Context(), core.Caller{Identity: id})
	if meant := c.Query("for"); meant != "" && meant != id.User.ID {
		return caller, w, false, core.Errorf(core.CodeForbidden, "this link was created for another person. Request your own link")
	}
	if caller, err = h.Authn.Access.Caller(c.UserContext(), id, c.Query("workspace")); err == nil {
		authn.NoteCaller(c.Context(), caller)
	}
	return caller, w, err == nil, err
}

// clipped shortens a parameter of unbounded length.
func clipped(text string) string {
	const limit = 100
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

func validScopes(text string) (valid []string) {
	for _, scope := range strings.Fields(text) {
		if core.ValidScope(scope) {
			valid = append(valid, scope)
		}
	}
	return valid
}

// identify returns the user who is logged in to the browser. It ignores API keys and tokens. ok is false if identify
// has already sent a response.
func (h *Handlers) identify(c *fiber.Ctx) (id core.Identity, ok bool, err error) {
	id, err = h.Authn.Identify(c.UserContext(), c, authn.Credentials{Cookie: c.Cookies(authn.SessionCookie)})
	if core.CodeOf(err) != core.CodeUnauthenticated || err == nil {
		return id, err == nil, err
	}
	here := hereWith(c, paramAgain, "1")
	if c.Query(paramAgain) == "" && c.Method() == fiber.MethodGet {
		return id, false, h.show(c, fiber.StatusOK, page{Reload: here.String()}, "")
	}
	c.Locals(httpio.AuditError{}, err)
	login := "/"
	if h.Login() {
		login = "/v1/auth/authorize?" + url.Values{"returnTo": {here.String()}}.Encode()
	}
	return id, false, h.show(c, fiber.StatusUnauthorized, page{Login: login}, "")
}

// hereWith returns the path and query of a request, with a parameter set.
func hereWith(c *fiber.Ctx, parameter, value string) *url.URL {
	here := &url.URL{Path: string(c.Context().Path()), RawQuery: string(c.Context().QueryArgs().QueryString())}
	q := here.Query()
	q.Set(parameter, value)
	here.RawQuery = q.Encode()
	return here
}

// orProblem shows an error as a page. It returns nil if err is nil or has been shown. Otherwise it returns an error
// that the person must not see.
func (h *Handlers) orProblem(c *fiber.Ctx, err error) error {
	known, ok := errors.AsType[*core.Error](err)
	if err == nil || !ok || known.Code == core.CodeInternal {
		return err
	}
	c.Locals(httpio.AuditError{}, err)
	h.Log.Info("account not linked", "reason", httpio.Cause(err, known), "request_id", c.GetRespHeader(fiber.HeaderXRequestID))
	status := fiber.StatusForbidden
	switch known.Code {
	case core.CodeNotFound:
		status = fiber.StatusNotFound
	case core.CodeUnavailable:
		status = fiber.StatusBadGateway
	case core.CodeConflict:
		status = fiber.StatusConflict
	case core.CodeRateLimited:
		status = fiber.StatusTooManyRequests
	case core.CodeBadRequest, core.CodeNotConfigured:
		status = fiber.StatusBadRequest
	default:
	}
	return h.show(c, status, page{Problem: known.Message}, "")
}

// show responds with a page. Its form may lead the browser to the authorization server.
func (h *Handlers) show(c *fiber.Ctx, status int, p page, authorize string) error {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return err
	}
	forms := "'self'"
	if origin := webguard.OriginOf(authorize); origin != "" {
		forms += " " + origin
	}
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; form-action "+forms)
	c.Set(fiber.HeaderCacheControl, "no-store")
	// The address contains a state and a code, which no other site may see. The stricter no-referrer does not work,
	// because browsers would send the form with Origin: null, which is refused.
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	c.Status(status).Type("html", "utf-8")
	return c.Send(out.Bytes())
}

// base returns the address at which the browser reaches this server.
func (h *Handlers) base(c *fiber.Ctx) string {
	if h.BaseURL != "" {
		return h.BaseURL
	}
	return h.Guard.Scheme(c.Context()) + "://" + string(c.Context().Host())
}

// setBinding sets the cookie for a login in progress; a negative age clears it. It is Lax because the authorization
// server's redirect comes from another site.
func (h *Handlers) setBinding(c *fiber.Ctx, value string, age int) {
	cookie := http.Cookie{
		Name: bindingCookie, Value: value, Path: accounts.CallbackPath, MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: !webguard.Loopback(string(c.Context().Host())) || h.Guard.Scheme(c.Context()) == "https",
	}
	c.Context().Response.Header.Add(fiber.HeaderSetCookie, cookie.String())
}
