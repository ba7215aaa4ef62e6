package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
)

//go:embed page.html
var source string

// Docs serves the reference page.
type Docs struct{ page func() (rendered, error) }

type rendered struct {
	html   []byte
	policy string
}

// New returns the reference page for an OpenAPI document in YAML or JSON. The page is rendered on the first request, so
// that it does not delay the server's start.
func New(openapi []byte) *Docs {
	return &Docs{page: sync.OnceValues(func() (rendered, error) { return render(openapi) })}
}

func render(openapi []byte) (rendered, error) {
	data, err := pageOf(openapi)
	if err != nil {
		return rendered{}, fmt.Errorf("the OpenAPI document: %w", err)
	}
	t, err := template.New("page").Parse(source)
	if err != nil {
		return rendered{}, err
	}
	var html bytes.Buffer
	if err := t.Execute(&html, data); err != nil {
		return rendered{}, err
	}
	return rendered{html.Bytes(), policyOf(html.String())}, nil
}

// policyOf returns a Content-Security-Policy that allows nothing except the page's style, which it identifies by its
// digest.
func policyOf(page string) string {
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	digest := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Mount registers the route /docs.
func (d *Docs) Mount(r fiber.Router) {
	r.Get("/docs", d.get)
	r.Head("/docs", d.get)
}

func (d *Docs) get(c *fiber.Ctx) error {
	page, err := d.page()
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentSecurityPolicy, page.policy)
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Send(page.html)
}
