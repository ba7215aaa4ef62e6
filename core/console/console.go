package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// Options configure a Console.
type Options struct {
	Dev    bool        // whether the server runs without authentication
	APIKey bool        // whether SERVICE_API_KEY is accepted on /v1
	Login  func() bool // whether an auth adapter is configured; nil means never
	// BrowserLogin reports whether people can log in on an identity provider's page; nil means never.
	BrowserLogin func(context.Context) bool
	BaseURL      string // the public address; "" means the address that the client used
	ViewOrigin   string // another origin of this server, for views; "" means none is configured
	Version      string // the server's version
}

// Console serves the web interface. It is safe for concurrent use.
type Console struct {
	o      Options
	files  files
	policy string // Content-Security-Policy of the page
}

// New returns a Console. Mount registers its routes.
func New(o Options) *Console {
	return &Console{o: o, files: embedded(), policy: pagePolicy(o)}
}

// screens returns the first path segments at which the page is served. Other paths are left
// alone, so that an unknown API path is still an error.
func screens() []string {
	return []string{"chat", "apps", "tools", "approvals", "activity", "usage", "accounts", "people", "system", "connect"}
}

// Mount registers the routes of the console.
func (c *Console) Mount(r fiber.Router) {
	both := func(path string, h fiber.Handler) {
		r.Get(path, h)
		r.Head(path, h)
	}
	both("/", c.page)
	for _, screen := range screens() {
		both("/"+screen, c.page)
		both("/"+screen+"/*", c.page)
	}
	both("/w/*", c.page) // the same screens, with the workspace in the path
	both("/favicon.svg", c.icon)
	both("/assets/*", c.asset)
	both("/console/facts.json", c.facts)
	both("/console/view", c.view)
}

// facts is what a page needs to know before anybody has logged in. It contains no secrets.
type facts struct {
	Product      string `json:"product"`
	Version      string `json:"version"`
	Dev          bool   `json:"dev"`
	APIKey       bool   `json:"apiKey"`
	Login        bool   `json:"login"`
	BrowserLogin bool   `json:"browserLogin"`
	BaseURL      string `json:"baseUrl,omitempty"`
	ViewOrigin   string `json:"viewOrigin"`
}

func (c *Console) facts(ctx *fiber.Ctx) error {
	ctx.Set(fiber.HeaderCacheControl, "no-store")
	return ctx.JSON(facts{
		Product: "Ropewalk", Version: c.o.Version, Dev: c.o.Dev, APIKey: c.o.APIKey, Login: c.o.Login != nil && c.o.Login(),
		BrowserLogin: c.o.BrowserLogin != nil && c.o.BrowserLogin(ctx.UserContext()),
		BaseURL:      c.o.BaseURL, ViewOrigin: c.viewOrigin(ctx),
	})
}

// viewOrigin returns the origin in which the page that sent this request shows views of apps: the
// configured origin, or in dev mode the other name of this machine. Otherwise it returns "", for the page's
// own origin, where only the sandbox directive of the frame's policy isolates views.
func (c *Console) viewOrigin(ctx *fiber.Ctx) string {
	host := string(ctx.Context().Host())
	if c.o.ViewOrigin != "" {
		return c.o.ViewOrigin
	}
	name, port, _ := strings.Cut(host, ":")
	if port != "" {
		port = ":" + port
	}
	switch {
	case c.o.Dev && name == "localhost":
		return "http://127.0.0.1" + port
	case c.o.Dev && name == "127.0.0.1":
		return "http://localhost" + port
	}
	return ""
}

// pagePolicy returns a policy that lets the page load only what this server serves. Views of apps are frames.
func pagePolicy(o Options) string {
	frames := []string{"'self'"}
	if o.ViewOrigin != "" {
		frames = append(frames, o.ViewOrigin)
	}
	if o.Dev {
		frames = append(frames, "http://localhost:*", "http://127.0.0.1:*")
	}
	return strings.Join([]string{
		"default-src 'self'", "img-src 'self' data: blob:", "frame-src " + strings.Join(frames, " "), "object-src 'none'",
		"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; ")
}

// pages returns the origins of the pages that may embed the frame of a view.
func (c *Console) pages() []string {
	all := []string{"'self'"}
	if u, err := url.Parse(c.o.BaseURL); err == nil && u.Host != "" {
		all = append(all, u.Scheme+"://"+u.Host)
	}
	if c.o.Dev {
		all = append(all, "http://localhost:*", "http://127.0.0.1:*")
	}
	return all
}
