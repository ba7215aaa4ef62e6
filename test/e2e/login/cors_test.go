package login

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestMCPCORSHeaders(t *testing.T) {
	t.Parallel()
	dev := harness.Serve(t)
	closed := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	listed := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Env("ALLOWED_ORIGINS=https://app.example, https://two.example"))
	const allowed, other = "https://app.example", "https://evil.example"

	for _, c := range []struct {
		what        string
		s           *harness.Server
		origin      string
		allow       string
		credentials string
	}{
		{"dev mode, any origin", dev, other, "*", ""},
		{"a listed origin", listed, allowed, allowed, "true"},
		{"the other listed origin", listed, "https://two.example", "https://two.example", "true"},
		{"an unlisted origin", listed, other, "", ""},
		{"no listed origins", closed, allowed, "", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, path := range []string{"/v1/health", "/v1/apps", "/v1/nothing", "/mcp"} {
				h := c.s.Do(t, "GET", path, nil, "Origin: "+c.origin).Header
				if h.Get("Access-Control-Allow-Origin") != c.allow || h.Get("Access-Control-Allow-Credentials") != c.credentials {
					t.Errorf("GET %s: %v", path, h)
				}
				if exposed := h.Get("Access-Control-Expose-Headers"); (c.allow != "") != strings.HasPrefix(exposed, "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id") {
					t.Errorf("GET %s exposes %q", path, exposed)
				}
				if varies := h.Get("Vary"); (c.s == listed) != (varies == "Origin") {
					t.Errorf("GET %s: Vary %q", path, varies)
				}
				a := c.s.Do(t, "OPTIONS", path, nil, "Origin: "+c.origin, "Access-Control-Request-Method: POST")
				if a.Status != 204 || a.Body != "" || a.Header.Get("Access-Control-Allow-Origin") != c.allow {
					t.Errorf("preflight of %s: %d %v", path, a.Status, a.Header)
				}
				if c.allow != "" && (a.Header.Get("Access-Control-Allow-Methods") != "GET, POST, PATCH, DELETE, OPTIONS" ||
					!strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "X-Workspace-Id")) {
					t.Errorf("preflight of %s: %v", path, a.Header)
				}
			}
		})
	}
}
