package source

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// A pattern for one host never allows an address on another host, no matter how it is written.
func FuzzPattern(f *testing.F) {
	p := NewPolicy(config.Install{Allow: []string{"url:https://*.acme.com/**", "npm:@acme/*"}})
	for _, seed := range []string{
		"https://mcp.acme.com/", "https://evil.com/.acme.com/", "https://evil.com?.acme.com/", "https://evil.com#.acme.com/", "https://a@evil.com/x.acme.com/",
		"https://evil.com\\.acme.com/", "https://evil.com%2f.acme.com/", "HTTPS://x.ACME.com", "https://[::1].acme.com/", "@acme/x", "@acme/../x", "@evil/@acme/x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		if _, err := p.Check(Order{Source: core.Source{Kind: core.SourceURL, Ref: ref}}); err == nil {
			u, err := url.Parse(ref)
			if err != nil || !strings.EqualFold(u.Scheme, "https") || !strings.HasSuffix(strings.ToLower(u.Hostname()), ".acme.com") {
				t.Errorf("%q is allowed", ref)
			}
		}
		if _, err := p.Check(Order{Source: core.Source{Kind: core.SourceNPM, Ref: ref}}); err == nil {
			if rest, ok := strings.CutPrefix(ref, "@acme/"); !ok || strings.Contains(rest, "/") {
				t.Errorf("the package %q is allowed", ref)
			}
		}
	})
}
