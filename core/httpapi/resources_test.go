package httpapi

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
)

func TestResourcePathsReferToTheAppsViews(t *testing.T) {
	h := open(t, newAccess(), nil)
	for path, uri := range map[string]string{
		"primary":                "primary",
		"main":                   "ui://echo/main",
		"deep/view.html":         "ui://echo/deep/view.html",
		"deep%2Fview.html":       "ui://echo/deep/view.html",
		"a%20view":               "ui://echo/a view",
		"ui%3A%2F%2Fecho%2Fmain": "ui://echo/main",
		"ui://echo/main":         "ui://echo/main",
		url.PathEscape("ui://other-name/mcp-app.html"): "ui://other-name/mcp-app.html", // apps may use any name in their URIs
		"a..b": "ui://echo/a..b",
	} {
		t.Run(path, func(t *testing.T) {
			h.apps.asked = nil
			r := h.do(t, call{method: "GET", path: "/v1/apps/echo/resources/" + path})
			if r.StatusCode != 200 || r.body != "<p>view</p>" || r.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%d %q %s", r.StatusCode, r.Header.Get("Content-Type"), r.body)
			}
			if len(h.apps.asked) != 1 || h.apps.asked[0] != uri {
				t.Errorf("asked for %q, want %q", h.apps.asked, uri)
			}
		})
	}
}

func TestABarePathIsAlsoTriedUnderTheNameInThePrimaryViewsURI(t *testing.T) {
	for name, c := range map[string]struct {
		primary, path string
		asked         []string
	}{
		"an app that uses a different name": {"ui://my-echo/main", "missing", []string{"ui://echo/missing", "ui://my-echo/missing"}},
		"an app that uses its server name":  {"ui://echo/main", "missing", []string{"ui://echo/missing"}},
		"an existing view":                  {"ui://my-echo/main", "main", []string{"ui://echo/main"}},
		"an app without a primary view":     {"", "missing", []string{"ui://echo/missing"}},
		"another app's full URI":            {"ui://my-echo/main", "ui://other/missing", []string{"ui://other/missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, newAccess(), nil)
			echo := &h.apps.apps[core.DefaultWorkspaceID][0]
			if echo.UI.PrimaryView.ResourceURI = core.ViewURI("echo", c.primary); c.primary == "" {
				echo.UI = nil
			}
			h.do(t, call{method: "GET", path: "/v1/apps/echo/resources/" + c.path})
			if !slices.Equal(h.apps.asked, c.asked) {
				t.Errorf("asked for %q, want %q", h.apps.asked, c.asked)
			}
		})
	}
}

func TestPathsOutsideTheAppAreRefusedWithoutCallingIt(t *testing.T) {
	h := open(t, newAccess(), nil)
	escaping := []string{"..", "../x", "x/../y", "x/..", "./x", ".", "", "x//y", "/x", "/etc/passwd", "..\\x", "x\\..\\y", "x\x00y", "x\ny", "ui://echo/../x", "ui://../x", "ui://", "ui:///x", "ui://echo//x"}
	schemes := []string{"file:///etc/passwd", "http://169.254.169.254/", "UI://echo/main", "data://x", "ui%3A://x"}
	for _, paths := range [][]string{escaping, schemes} {
		for _, path := range paths {
			for _, encoded := range []string{url.PathEscape(path), strings.ReplaceAll(url.PathEscape(path), ".", "%2E"), strings.ReplaceAll(url.PathEscape(path), "%2F", "/"), strings.ReplaceAll(url.PathEscape(path), "%", "%25")} {
				h.apps.asked = nil
				h.apps.resource.Body = []byte("outside")
				got := h.rawToEnd(t, "GET /v1/apps/echo/resources/"+encoded+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "+h.access.key+"\r\n\r\n")
				refused := strings.HasPrefix(got, "HTTP/1.1 400 ") || strings.HasPrefix(got, "HTTP/1.1 404 ")
				for _, uri := range h.apps.asked { // a doubly encoded path may reach the app as an ordinary name
					if !strings.HasPrefix(uri, "ui://echo/") || strings.Contains(uri, "..") {
						t.Errorf("%q asked for %q", encoded, uri)
					}
				}
				if !refused && len(h.apps.asked) == 0 {
					t.Errorf("%q: %s", encoded, got)
				}
			}
		}
	}
}

func TestAResourcePathWithDotDotIsNotFound(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, path := range []string{"..", "x/../y", "x/..", "./x", ".", "x//y", "/etc/passwd", "..\\x", "x\ny", "ui://echo/../x", "ui:///x", "file:///etc/passwd", "%2e%2e/x"} {
		r := h.do(t, call{method: "GET", path: "/v1/apps/echo/resources/" + url.PathEscape(path)})
		if r.StatusCode != 404 || r.code() != "resource_not_found" || len(h.apps.asked) > 0 {
			t.Errorf("%q: %d %s; the app was called for %q", path, r.StatusCode, r.body, h.apps.asked)
		}
	}
}

func TestAViewIsIsolatedFromTheServersOrigin(t *testing.T) {
	dev := newAccess()
	dev.dev = true
	for name, c := range map[string]struct {
		testServer *testServer
		frames     string
	}{
		"key":    {open(t, newAccess(), nil), "frame-ancestors 'self'"},
		"listed": {open(t, newAccess(), func(o *Options) { o.AllowedOrigins = []string{"https://app.example"} }), "frame-ancestors 'self' https://app.example"},
		"dev":    {open(t, dev, nil), "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"},
	} {
		r := c.testServer.do(t, call{method: "GET", path: "/v1/apps/echo/resources/main"})
		policy := r.Header.Get("Content-Security-Policy")
		for _, want := range []string{"sandbox allow-scripts", "default-src 'none'", "connect-src 'none'", "form-action 'none'", c.frames} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: %q lacks %q", name, policy, want)
			}
		}
		if strings.Contains(policy, "allow-same-origin") || !strings.HasSuffix(policy, c.frames) {
			t.Errorf("%s: %q", name, policy)
		}
	}
}

func TestAResourceIsServedWithItsDeclaredType(t *testing.T) {
	h := open(t, newAccess(), nil)
	for declared, served := range map[string]string{
		"text/html": "text/html; charset=utf-8", "text/html;profile=mcp-app": "text/html; charset=utf-8", "": "text/html; charset=utf-8",
		"TEXT/HTML": "text/html; charset=utf-8", "not a type\r\nX: y": "text/html; charset=utf-8", "image/png": "image/png", "text/css; charset=x": "text/css",
	} {
		h.apps.resource = apps.Resource{MIME: declared, Body: []byte("x")}
		r := h.do(t, call{method: "GET", path: "/v1/apps/echo/resources/main"})
		if got := r.Header.Get("Content-Type"); got != served || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%q is served as %q", declared, got)
		}
	}
}

func TestAnAppsResourceIsNeverServedAsAScript(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, declared := range []string{
		"text/javascript", "application/javascript", "Application/JavaScript; charset=utf-8", "text/ecmascript", "application/x-javascript", "text/x-ecmascript",
		"text/javascript1.5", "text/jscript", "text/livescript", "application/ecmascript", "text/x-javascript;profile=mcp-app",
		"multipart/x-mixed-replace", "Multipart/X-Mixed-Replace; boundary=a", "multipart/related", "message/rfc822",
	} {
		h.apps.resource = apps.Resource{MIME: declared, Body: []byte("alert(1)")}
		r := h.do(t, call{method: "GET", path: "/v1/apps/echo/resources/main"})
		if got := r.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q is served as %q", declared, got)
		}
	}
}

func TestAClientThatPrefersJSONGetsAViewWithItsMeta(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.apps.resource = apps.Resource{URI: "ui://echo/main", MIME: "text/html", Body: []byte("view"), Meta: json.RawMessage(`{"ui":{"csp":{}}}`)}
	accept := map[string]string{"Accept": "application/json, text/html;q=0.5"}
	r := h.do(t, call{method: "GET", path: "/v1/apps/echo/resources/main", header: accept})
	if want := `{"uri":"ui://echo/main","mimeType":"text/html","text":"view","_meta":{"ui":{"csp":{}}}}`; r.StatusCode != 200 || r.body != want {
		t.Errorf("%d %s, want %s", r.StatusCode, r.body, want)
	}
}
