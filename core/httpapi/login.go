package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

type loginRequest struct {
	Key string `json:"key"`
}

type okResponse struct {
	OK bool `json:"ok"`
}

// login is POST /v1/auth/login: it exchanges the API key for a session cookie.
func (s *Server) login(c *fiber.Ctx) error {
	r, err := body.Read[loginRequest](c.Context())
	if err != nil {
		return err
	}
	if r.Key == "" {
		return core.Errorf(core.CodeBadRequest, "key is missing; send the API key")
	}
	if err := s.access.AllowLogin(s.guard.ClientAddress(c.Context())); err != nil {
		return err
	}
	token, err := s.access.Login(c.UserContext(), r.Key)
	if err != nil {
		return err
	}
	s.setCookie(c, http.Cookie{Name: sessionCookie, Value: token, Path: "/", MaxAge: sessionAge, SameSite: http.SameSiteStrictMode})
	return c.JSON(okResponse{OK: true})
}

// logout is POST /v1/auth/logout.
func (s *Server) logout(c *fiber.Ctx, _ core.Identity) error {
	if token := c.Cookies(sessionCookie); token != "" {
		if err := s.access.Logout(c.UserContext(), token); err != nil {
			return err
		}
	}
	s.setCookie(c, http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1, SameSite: http.SameSiteStrictMode})
	return c.JSON(okResponse{OK: true})
}

type sessionAnswer struct {
	Authenticated bool      `json:"authenticated"`
	User          core.User `json:"user"`
}

// getSession is GET /v1/auth/session.
func (s *Server) getSession(c *fiber.Ctx, id core.Identity) error {
	return c.JSON(sessionAnswer{Authenticated: true, User: id.User})
}

// authorize is GET /v1/auth/authorize: it redirects the browser to the identity provider. The query
// parameter returnTo is the local path to return to afterwards.
func (s *Server) authorize(c *fiber.Ctx) error {
	returnTo := c.Query("returnTo", "/")
	if !localPath(returnTo) {
		return core.Errorf(core.CodeBadRequest, "returnTo must be a local path, such as /")
	}
	redirect := s.options.RedirectURI
	if redirect == "" {
		redirect = s.guard.Scheme(c.Context()) + "://" + string(c.Context().Host()) + loginCookiePath
	}
	start, err := s.access.BeginLogin(c.UserContext(), redirect, returnTo)
	if err != nil {
		return err
	}
	s.setCookie(c, http.Cookie{
		Name: loginCookie, Value: start.Binding, Path: loginCookiePath, MaxAge: loginAge,
		SameSite: http.SameSiteLaxMode, // the provider's redirect comes from another site
	})
	return c.Redirect(start.URL, fiber.StatusFound)
}

// callback is GET /v1/auth/callback: the identity provider redirects the browser here.
func (s *Server) callback(c *fiber.Ctx) error {
	token, returnTo, err := s.access.FinishLogin(c.UserContext(), access.LoginAnswer{
		State: c.Query("state"), Code: c.Query("code"), Binding: c.Cookies(loginCookie),
	})
	s.setCookie(c, http.Cookie{Name: loginCookie, Path: loginCookiePath, MaxAge: -1, SameSite: http.SameSiteLaxMode})
	if core.CodeOf(err) == core.CodeNotConfigured {
		return err
	}
	if err != nil {
		s.logFailedLogin(c, err)
		return c.Redirect("/?"+url.Values{"error": {"auth_failed"}}.Encode(), fiber.StatusFound)
	}
	s.setCookie(c, http.Cookie{Name: sessionCookie, Value: token, Path: "/", MaxAge: sessionAge, SameSite: http.SameSiteLaxMode})
	if !localPath(returnTo) {
		returnTo = "/"
	}
	return c.Redirect(returnTo, fiber.StatusFound)
}

// logFailedLogin logs why a browser login failed: the browser is only told that it did.
func (s *Server) logFailedLogin(c *fiber.Ctx, err error) {
	reason := err.Error()
	if e, ok := errors.AsType[*core.Error](err); ok {
		reason = cause(err, e)
	}
	args := []any{"reason", reason, "request_id", string(c.Context().Response.Header.Peek(requestIDHeader))}
	if said := c.Query("error"); said != "" {
		args = append(args, "provider_error", said, "provider_description", c.Query("error_description"))
	}
	s.log.Warn("browser login failed", args...)
}

// localPath reports whether a browser reads p as a path of this server: //host and /\host are not.
func localPath(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.HasPrefix(p, `/\`) {
		return false
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
}
