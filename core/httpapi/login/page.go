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

// page is what a person sees of a login besides the console and the identity provider.
type page struct {
	Title   string
	Text    []string
	Links   []link
	Ask     bool   // for the code of a device
	Consent string // asks whether a device may be logged in; "" for no question
	Code    string // of that device

	form string // where the browser may go from a form, besides this server
}

type link struct{ Name, URL string }

// send responds with the page, which has its style, no script, and no place in a frame.
func (p page) send(c *fiber.Ctx, status int) error {
	html, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := html.Execute(&out, p); err != nil {
		return err
	}
	action := "'none'"
	if p.Ask || p.Consent != "" {
		action = "'self' " + p.form
	}
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action "+action+"; frame-ancestors 'none'")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Type("html", "utf-8")
	return c.Status(status).Send(out.Bytes())
}

// choose is a page on which a person chooses where to log in.
func choose(c *fiber.Ctx, names []string, query url.Values) error {
	links := make([]link, len(names))
	for i, name := range names {
		query.Set("provider", name)
		links[i] = link{name, "/v1/auth/authorize?" + query.Encode()}
	}
	return page{Title: "Log in", Text: []string{"Choose where you have an account."}, Links: links}.send(c, fiber.StatusOK)
}
