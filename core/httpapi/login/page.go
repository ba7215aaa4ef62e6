package login

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/url"

	"github.com/gofiber/fiber/v2"
)

//go:embed page.html
var pageHTML string

// page is a login page served by neither the console nor the identity provider.
type page struct {
	Title   string
	Text    []string
	Links   []link
	Ask     bool   // whether to ask for a device's code
	Consent string // the token for the consent form; "" if the page has none
	Code    string // the device's code

	form string // the origin to which the form may redirect, in addition to this server
}

type link struct{ Name, URL string }

// send responds with the page. The page may use its inline style but no scripts, and it cannot be framed.
func (p page) send(c *fiber.Ctx, status int) error {
	html, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := html.Execute(&out, p); err != nil {
		return err
	}
	forms := "; form-action 'none'"
	switch {
	case p.Ask:
		// The response redirects to the identity provider, which may redirect further. Chromium applies form-action to
		// all of these redirects, and blocks the form silently.
		forms = ""
	case p.Consent != "":
		forms = "; form-action 'self' " + p.form
	}
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"+forms)
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Type("html", "utf-8")
	return c.Status(status).Send(out.Bytes())
}

// choose sends a page on which a person chooses an identity provider.
func choose(c *fiber.Ctx, names []string, query url.Values) error {
	links := make([]link, len(names))
	for i, name := range names {
		query.Set("provider", name)
		links[i] = link{name, "/v1/auth/authorize?" + query.Encode()}
	}
	return page{Title: "Log in", Text: []string{"Choose where to log in."}, Links: links}.send(c, fiber.StatusOK)
}
