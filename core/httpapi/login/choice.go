package login

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/url"

	"github.com/gofiber/fiber/v2"
)

//go:embed choice.html
var choiceHTML string

// choicePolicy lets the page have its style and nothing else.
const choicePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type choice struct{ Name, URL string }

// choose is a page on which a person chooses where to log in.
func choose(c *fiber.Ctx, names []string, returnTo string) error {
	page, err := template.New("choice").Parse(choiceHTML)
	if err != nil {
		return err
	}
	choices := make([]choice, len(names))
	for i, name := range names {
		choices[i] = choice{name, "/v1/auth/authorize?" + url.Values{"provider": {name}, "returnTo": {returnTo}}.Encode()}
	}
	var out bytes.Buffer
	if err := page.Execute(&out, choices); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentSecurityPolicy, choicePolicy)
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Type("html", "utf-8")
	return c.Send(out.Bytes())
}
