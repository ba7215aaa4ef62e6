package httpapi

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
)

const (
	sessionCookie = "service_session"
	sessionAge    = 604800 // seconds, 7 days (contract part 2)

	// loginCookie ties a browser login under way to its browser.
	loginCookie     = "service_login"
	loginCookiePath = "/v1/auth/callback"
	loginAge        = 600 // seconds
)

// setCookie adds a cookie that scripts cannot read and that travels over TLS only, except to this
// machine itself without TLS. A negative age, in seconds, clears it.
func (s *Server) setCookie(c *fiber.Ctx, cookie http.Cookie) {
	cookie.HttpOnly = true
	cookie.Secure = !loopback(string(c.Context().Host())) || s.scheme(c) == "https"
	c.Context().Response.Header.Add(fiber.HeaderSetCookie, cookie.String())
}
