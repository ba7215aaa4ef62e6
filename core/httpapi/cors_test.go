package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestCORSHeaders(t *testing.T) {
	const listed, other = "https://app.example", "https://evil.example"
	dev := newAccess()
	dev.dev = true
	servers := map[string]*testServer{
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
						want["Access-Control-Expose-Headers"] = "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id, WWW-Authenticate, Retry-After"
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

func TestAPreflightAllowsArgumentHeaders(t *testing.T) {
	const listed = "https://app.example"
	h := open(t, newAccess(), func(o *Options) { o.AllowedOrigins = []string{listed} })
	base := h.preflight(t, listed)
	for _, c := range []struct{ name, asked, more string }{
		{"none", "", ""},
		{"one, in lower case as browsers send it", "mcp-param-region", ", mcp-param-region"},
		{"some among others", "content-type,mcp-param-a,x-evil , Mcp-Param-B", ", mcp-param-a, Mcp-Param-B"},
		{"only the prefix", "mcp-param-", ""},
		{"another prefix", "x-mcp-param-a,mcp-parameter", ""},
		{"not tokens", "mcp-param-a b,mcp-param-\"c\",mcp-param-d:e,mcp-param-\u00e9", ""},
		{"a wildcard", "*,mcp-param-*", ", mcp-param-*"}, // an ordinary token, because wildcards do not apply to requests with credentials
		{"empty elements", ",, ,mcp-param-a,", ", mcp-param-a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := h.preflight(t, listed, c.asked); got != base+c.more {
				t.Errorf("got  %q\nwant %q", got, base+c.more)
			}
		})
	}
	if got := h.preflight(t, "https://evil.example", "mcp-param-a"); got != "" {
		t.Errorf("a page that is not listed should not be allowed to send %q", got)
	}
}

// preflight returns the headers that a page from an origin may send if its preflight asks for the given ones.
func (h *testServer) preflight(t *testing.T, origin string, asked ...string) string {
	t.Helper()
	r := h.do(t, call{method: "OPTIONS", path: "/mcp", header: map[string]string{
		"Authorization": "", "Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": strings.Join(asked, ","),
	}})
	return r.Header.Get("Access-Control-Allow-Headers")
}

func TestDisabledEndpointsRespondToEveryMethod(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.RespondIfDisabled = func(ctx *fasthttp.RequestCtx) bool {
			off := string(ctx.Path()) == "/mcp"
			if off {
				ctx.SetStatusCode(http.StatusNotFound)
			}
			return off
		}
	})
	for path, want := range map[string]map[string]int{
		"/mcp":       {"OPTIONS": 404, "GET": 404, "POST": 404, "TRACE": 404},
		"/v1/health": {"OPTIONS": 204, "GET": 200, "TRACE": 405},
	} {
		for method, status := range want {
			if r := h.do(t, call{method: method, path: path}); r.StatusCode != status {
				t.Errorf("%s %s: %d, want %d", method, path, r.StatusCode, status)
			}
		}
	}
}
