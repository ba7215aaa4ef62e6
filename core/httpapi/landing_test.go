package httpapi

import (
	"strings"
	"testing"
)

func TestTheLandingPageShowsWhoYouAreAndHowToConnect(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) {
		o.Landing, o.Login, o.BaseURL = true, func() bool { return true }, "https://tools.example.com"
	})
	for name, c := range map[string]struct {
		call       call
		has, lacks string
	}{
		"logged in":      {call{method: "GET", path: "/"}, "https://tools.example.com/mcp/ws_default", "/v1/auth/authorize"},
		"not logged in":  {call{method: "GET", path: "/", header: map[string]string{"Authorization": anonymous}}, `<a href="/v1/auth/authorize">`, "ws_default"},
		"a failed login": {call{method: "GET", path: "/?error=auth_failed", header: map[string]string{"Authorization": anonymous}}, "The login failed", "ws_default"},
	} {
		r := h.do(t, c.call)
		if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			t.Fatalf("%s: %d %s", name, r.StatusCode, r.body)
		}
		if !strings.Contains(r.body, c.has) || strings.Contains(r.body, c.lacks) {
			t.Errorf("%s: want %q, but not %q, in\n%s", name, c.has, c.lacks, r.body)
		}
		if !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", name, r.Header)
		}
	}
}

func TestTheRootIsNotFoundIfThereIsNoLandingPage(t *testing.T) {
	h := open(t, newAccess(), nil)
	if r := h.do(t, call{method: "GET", path: "/"}); r.StatusCode != 404 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
