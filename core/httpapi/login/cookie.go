package login

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/webguard"
)

const (
	sessionAge = 604800 // seconds, 7 days

	// loginCookie ties a pending browser login to its browser.
	loginCookie     = "service_login"
	loginCookiePath = "/v1/auth/callback"
	loginAge        = 600 // seconds
)

func (h *Handlers) setSessionCookie(c *fiber.Ctx, token string, site http.SameSite) {
	h.setCookie(c, http.Cookie{Name: authn.SessionCookie, Value: token, Path: "/", MaxAge: sessionAge, SameSite: site})
}

func (h *Handlers) clearSessionCookie(c *fiber.Ctx) {
	h.setCookie(c, http.Cookie{Name: authn.SessionCookie, Path: "/", MaxAge: -1, SameSite: http.SameSiteStrictMode})
}

// setLoginCookie sets the cookie of a pending login. The cookie is Lax because the provider's redirect comes from
// another site.
func (h *Handlers) setLoginCookie(c *fiber.Ctx, binding string) {
	h.setCookie(c, http.Cookie{Name: loginCookie, Value: binding, Path: loginCookiePath, MaxAge: loginAge, SameSite: http.SameSiteLaxMode})
}

func (h *Handlers) clearLoginCookie(c *fiber.Ctx) {
	h.setCookie(c, http.Cookie{Name: loginCookie, Path: loginCookiePath, MaxAge: -1, SameSite: http.SameSiteLaxMode})
}

// setCookie adds an HttpOnly cookie. The cookie is Secure except on localhost without TLS. MaxAge is in seconds; a
// negative value clears the cookie.
func (h *Handlers) setCookie(c *fiber.Ctx, cookie http.Cookie) {
	cookie.HttpOnly = true
	cookie.Secure = !webguard.Loopback(string(c.Context().Host())) || h.Guard.Scheme(c.Context()) == "https"
	c.Context().Response.Header.Add(fiber.HeaderSetCookie, cookie.String())
}
