package console

import (
	_ "embed" // the frame
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// frame is the page between the console and a view of an app (MCP Apps, sandbox proxy). It forwards
// messages and shows the view in an inner frame, which inherits the policy of this page.
//
//go:embed view.html
var frame []byte

// viewNeeds is the content security policy that a view asks for (_meta.ui.csp of its resource).
type viewNeeds struct {
	Connect  []string `json:"connectDomains"`
	Resource []string `json:"resourceDomains"`
	Frame    []string `json:"frameDomains"`
	Base     []string `json:"baseUriDomains"`
}

// view serves the frame with a policy derived from the view's needs. The policy's sandbox gives the page and
// the frames in it an opaque origin: no cookies, no storage, no access to this server.
func (c *Console) view(ctx *fiber.Ctx) error {
	var needs viewNeeds
	if raw := ctx.Query("csp"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &needs); err != nil {
			return core.Errorf(core.CodeBadRequest, "csp must be a JSON object with lists of origins, like _meta.ui.csp")
		}
	}
	ctx.Set(fiber.HeaderContentSecurityPolicy, needs.policy(c.pages()))
	ctx.Set("X-DNS-Prefetch-Control", "off")
	ctx.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	ctx.Set(fiber.HeaderCacheControl, "no-store")
	ctx.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return ctx.Send(frame)
}

// policy returns a policy that allows a view its own inline code, and only the network destinations that it
// names. The view cannot navigate elsewhere, because frame-src also applies to navigation of its frame.
func (n viewNeeds) policy(pages []string) string {
	resources := sources(n.Resource)
	inline := append([]string{"'unsafe-inline'", "data:", "blob:"}, resources...)
	script := append([]string{"'unsafe-inline'", "'unsafe-eval'", "'wasm-unsafe-eval'", "blob:", "data:"}, resources...)
	media := append([]string{"data:", "blob:"}, resources...)
	directive := func(name string, values []string) string {
		if len(values) == 0 {
			values = []string{"'none'"}
		}
		return name + " " + strings.Join(values, " ")
	}
	return strings.Join([]string{
		"sandbox allow-scripts allow-forms", "default-src 'none'",
		directive("script-src", script), directive("style-src", inline), directive("img-src", media), directive("font-src", media),
		directive("media-src", media), directive("worker-src", []string{"blob:"}), directive("connect-src", sources(n.Connect)),
		directive("frame-src", sources(n.Frame)), directive("base-uri", sources(n.Base)), "form-action 'none'", "object-src 'none'",
		directive("frame-ancestors", pages),
	}, "; ")
}

// origin matches scheme://host[:port], with * for a subdomain. Nothing else gets into a policy.
var origin = regexp.MustCompile(`^(https|http|wss|ws)://(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`)

// sources returns the origins among domains. URLs are reduced to their origin, and everything that is not
// an origin is left out.
func sources(domains []string) []string {
	var all []string
	for _, d := range domains {
		if u, err := url.Parse(d); err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" {
			d = u.Scheme + "://" + u.Host
		}
		if origin.MatchString(d) && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}
