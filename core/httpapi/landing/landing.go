// Package landing serves the page at / of a server whose console is switched off. The page shows who the visitor is and
// how to connect. A browser login also returns there.
//
// It does not own the console (package console) or decide when to serve the page (package httpapi).
package landing

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/webguard"
)

//go:embed page.html
var pageHTML string

// policy allows the page's inline style and nothing else.
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Access lists the workspaces of callers.
type Access interface {
	Workspaces(ctx context.Context, id core.Identity) ([]core.Workspace, error)
}

// Page is the landing page.
type Page struct {
	Access  Access
	Authn   *authn.Authenticator
	Guard   *webguard.Policy
	Login   func() bool // whether an identity provider is configured
	Version string

	template *template.Template
}

// New returns p, ready to be served.
func New(p Page) (*Page, error) {
	var err error
	p.template, err = template.New("page").Parse(pageHTML)
	return &p, err
}

type workspace struct{ Name, URL string }

type facts struct {
	Base, Version string
	User          string // email, name or ID; "" if nobody is logged in
	Role          core.Role
	Workspaces    []workspace
	Login, Failed bool
}

// Get handles GET /.
func (p *Page) Get(c *fiber.Ctx) error {
	about := facts{Base: p.base(c), Version: p.Version, Login: p.Login(), Failed: c.Query("error") == "auth_failed"}
	cred, err := authn.FromRequest(c)
	if err != nil {
		return err
	}
	id, err := p.Authn.Identify(c.UserContext(), c, cred)
	switch {
	case err == nil:
		if err := p.describe(c.UserContext(), id, &about); err != nil {
			return err
		}
	case core.CodeOf(err) != core.CodeUnauthenticated:
		return err
	}
	var page bytes.Buffer
	if err := p.template.Execute(&page, about); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	return c.Send(page.Bytes())
}

func (p *Page) describe(ctx context.Context, id core.Identity, about *facts) error {
	about.Role = id.User.OrgRole
	for _, name := range []string{id.User.Email, id.User.DisplayName, id.User.ID} {
		if about.User == "" {
			about.User = name
		}
	}
	all, err := p.Access.Workspaces(ctx, id)
	for _, w := range all {
		about.Workspaces = append(about.Workspaces, workspace{w.Name, about.Base + "/mcp/" + w.ID})
	}
	return err
}

// base returns the public address of the server.
func (p *Page) base(c *fiber.Ctx) string {
	if p.Guard.BaseURL != "" {
		return strings.TrimSuffix(p.Guard.BaseURL, "/")
	}
	return p.Guard.Scheme(c.Context()) + "://" + string(c.Context().Host())
}
