package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestCORSInItsCases(t *testing.T) {
	const listed, other = "https://app.example", "https://evil.example"
	dev := newAccess()
	dev.dev = true
	servers := map[string]*house{
		"dev":      open(t, dev, nil),
		"dev+list": open(t, dev, func(o *Options) { o.AllowedOrigins = []string{listed} }),
		"list":     open(t, newAccess(), func(o *Options) { o.AllowedOrigins = []string{listed, "http://localhost:3000"} }),
		"none":     open(t, newAccess(), nil),
	}
	for _, c := range []struct{ server, origin, allow, credentials, vary string }{
		{"dev", listed, "*", "", ""},
		{"dev", other, "*", "", ""},
		{"dev", "", "*", "", ""},
		{"dev+list", other, "*", "", ""},
		{"list", listed, listed, "true", "Origin"},
		{"list", "http://localhost:3000", "http://localhost:3000", "true", "Origin"},
		{"list", other, "", "", "Origin"},
		{"list", "null", "", "", "Origin"},
		{"list", "", "", "", "Origin"},
		{"list", listed + ".evil.example", "", "", "Origin"},
		{"list", "http://app.example", "", "", "Origin"},
		{"list", listed + ":8443", "", "", "Origin"},
		{"none", listed, "", "", ""},
		{"none", "", "", "", ""},
	} {
		for _, method := range []string{"GET", "OPTIONS"} {
			for _, path := range []string{"/v1/health", "/v1/nothing", "/v1/apps"} {
				t.Run(strings.Join([]string{c.server, c.origin, method, path}, " "), func(t *testing.T) {
					header := map[string]string{"Origin": c.origin}
					if method == "OPTIONS" {
						header["Access-Control-Request-Method"] = "POST"
						header["Authorization"] = ""
					}
					r := servers[c.server].do(t, call{method: method, path: path, header: header})
					want := map[string]string{
						"Access-Control-Allow-Origin": c.allow, "Access-Control-Allow-Credentials": c.credentials, "Vary": c.vary,
						"Access-Control-Expose-Headers": "", "Access-Control-Allow-Methods": "", "Access-Control-Allow-Headers": "",
					}
					if c.allow != "" {
						want["Access-Control-Expose-Headers"] = "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id"
					}
					if method == "OPTIONS" {
						if r.StatusCode != http.StatusNoContent || r.body != "" {
							t.Errorf("preflight: %d %q", r.StatusCode, r.body)
						}
						if c.allow != "" {
							want["Access-Control-Allow-Methods"] = "GET, POST, PATCH, DELETE, OPTIONS"
							want["Access-Control-Allow-Headers"] = "Content-Type, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Workspace-Id"
						}
					}
					for name, value := range want {
						if got := strings.Join(r.Header.Values(name), ", "); got != value {
							t.Errorf("%s is %q, want %q", name, got, value)
						}
					}
				})
			}
		}
	}
}
