package login

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core/webguard"
)

const (
	sessionAge = 604800 // seconds, 7 days

	// loginCookie ties a pending browser login to its browser.
	loginCookie     = "service_login"
	loginCookiePath = "/v1/auth/callback"
	loginAge        = 600 // seconds
)

// setCookie adds a cookie that is HttpOnly, and Secure except on localhost without TLS. A negative
// MaxAge, in seconds, clears it.
func (h *Handlers) setCookie(c *fiber.Ctx, cookie http.Cookie) {
	cookie.HttpOnly = true
	cookie.Secure = !webguard.Loopback(string(c.Context().Host())) || h.Guard.Scheme(c.Context()) == "https"
	c.Context().Response.Header.Add(fiber.HeaderSetCookie, cookie.String())
}
