package mcphttp

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

func TestTheGatesRunInOrder(t *testing.T) {
	off := start(t, func(o *Options) { o.Features = config.Features{config.FlagMCPServer: false} })
	on := start(t, func(o *Options) { o.MaxBody = 1000 })
	nobody, stranger := who{}, who{token: "alice", workspace: "ws_bob"}
	big := `{"pad":"` + strings.Repeat("x", 1000) + `"}`
	for _, tc := range []struct {
		name   string
		rig    *rig
		method string
		who    who
		body   string
		extra  []string
		status int
		text   string // in the body
	}{
		{"with the flag off, 404 comes before everything else", off, "POST", nobody, "", []string{"Host: evil.test"}, 404, "Not found"},
		{"with the flag off, GET returns 404", off, "GET", alice, "", nil, 404, "Not found"},
		{"with the flag off, PUT returns 404", off, "PUT", alice, "", nil, 404, "Not found"},
		{"with the flag off, a preflight returns 404", off, "OPTIONS", nobody, "", []string{"Origin: http://localhost"}, 404, "Not found"},
		{"a foreign Host comes before the token", on, "POST", nobody, "", []string{"Host: evil.test"}, 403, "Host"},
		{"a foreign Origin comes before the token", on, "POST", nobody, "", []string{"Origin: http://evil.test"}, 403, "Origin"},
		{"the token comes before the method", on, "PUT", nobody, "", nil, 401, ""},
		{"the token comes before the size", on, "POST", nobody, big, nil, 401, ""},
		{"an invalid token is treated as none", on, "POST", who{token: "bad", workspace: "ws_one"}, "", nil, 401, ""},
		{"another scheme is treated as none", on, "POST", alice, "", []string{"Authorization: Basic YTpi"}, 401, ""},
		{"an unknown method", on, "PUT", alice, "", nil, 405, ""},
		{"the size comes before the workspace", on, "POST", who{token: "alice"}, big, nil, 413, "larger"},
		{"the error for a missing workspace says where to find one", on, "POST", who{token: "alice"}, hello("2025-11-25"), nil, 400, "GET /v1/workspace (or GET /v1/bootstrap)"},
		{"GET without a workspace", on, "GET", who{token: "alice"}, "", nil, 400, "X-Workspace-Id"},
		{"DELETE without a workspace", on, "DELETE", who{token: "alice"}, "", nil, 400, "X-Workspace-Id"},
		{"a malformed workspace", on, "POST", who{token: "alice", workspace: "one"}, hello("2025-11-25"), nil, 400, "malformed"},
		{"the membership comes before the session", on, "POST", stranger, hello("2025-11-25"), []string{"Mcp-Session-Id: x"}, 403, "not a member"},
		{"the session comes last", on, "POST", who{"alice", "ws_one", "x"}, "{", nil, 404, "Session not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.rig = tc.rig.in(t)
			resp, body := tc.rig.say(tc.method, tc.who, tc.body, tc.extra...)
			if resp.StatusCode != tc.status || !strings.Contains(body, tc.text) {
				t.Errorf("got %d %q, want %d with %q", resp.StatusCode, body, tc.status, tc.text)
			}
			if (tc.status == 401) != (resp.Header.Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate is %q", resp.Header.Get("WWW-Authenticate"))
			}
			if tc.status == 401 && !strings.Contains(body, "ropewalk key create") {
				t.Errorf("a 401 should say what to do, got %q", body)
			}
			if tc.status == 405 && resp.Header.Get("Allow") != "GET, POST, DELETE" {
				t.Errorf("Allow is %q", resp.Header.Get("Allow"))
			}
		})
	}
}

func TestTheUnauthorizedHeaderUsesTheClientsScheme(t *testing.T) {
	trusting := start(t, func(o *Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	careful := start(t, nil)
	fixed := start(t, func(o *Options) { o.BaseURL = "https://mcp.example/" })
	for _, tc := range []struct {
		name  string
		rig   *rig
		extra []string
		base  string
	}{
		{"a direct connection", careful, nil, careful.url},
		{"forwarded by a trusted proxy", trusting, []string{"X-Forwarded-Proto: https"}, "https://" + trusting.addr},
		{"the first of several schemes", trusting, []string{"X-Forwarded-Proto: https, http"}, "https://" + trusting.addr},
		{"forwarded with an invalid scheme", trusting, []string{`X-Forwarded-Proto: x"y`}, trusting.url},
		{"forwarded by an untrusted client", careful, []string{"X-Forwarded-Proto: https"}, careful.url},
		{"a configured address", fixed, []string{"X-Forwarded-Proto: http"}, "https://mcp.example"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.rig = tc.rig.in(t)
			resp, _ := tc.rig.say("POST", who{}, "", tc.extra...)
			want := `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + tc.base + `/.well-known/oauth-protected-resource"`
			if got := resp.Header.Get("WWW-Authenticate"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestDevModeNeedsNoToken(t *testing.T) {
	r := start(t, func(o *Options) { o.Access = &people{dev: true} })
	w := r.join(who{workspace: "ws_default"})
	if _, body := r.say("POST", w, callBody(1, "demo__echo", "{}")); !strings.Contains(body, "owner/ws_default") {
		t.Errorf("a dev-mode caller should be the owner, got %s", body)
	}
}

func TestAnUnavailableProviderIsNotARefusal(t *testing.T) {
	r := start(t, nil)
	r.people.down.Store(true)
	resp, _ := r.say("POST", alice, hello("2025-11-25"))
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "2" {
		t.Errorf("got %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	dev := start(t, func(o *Options) { o.Access = &people{dev: true} })
	plain := start(t, nil)
	set := start(t, func(o *Options) {
		o.AllowedHosts, o.AllowedOrigins = []string{"mcp.example"}, []string{"https://app.example"}
		o.BaseURL = "https://public.example"
	})
	own := who{token: "alice", workspace: "ws_default"}
	for _, tc := range []struct {
		rig          *rig
		host, origin string
		admitted     bool
	}{
		{plain, "", "", true},
		{plain, "localhost", "", true},
		{plain, "LOCALHOST:99", "", true},
		{plain, "[::1]:99", "", true},
		{plain, "127.9.9.9", "", true},
		{plain, `[::1%"x]`, "", false},
		{plain, "demo.localhost", "", true},
		{plain, "localhost.evil.test", "", false},
		{plain, "evillocalhost", "", false},
		{plain, "evil.test:80", "", false},
		{plain, "127.0.0.1.evil.test", "", false},
		{plain, "localhost:evil", "", false},
		{plain, "0.0.0.0", "", false},
		{plain, "", "http://localhost:6274", false},
		{plain, "localhost", "http://localhost", true},
		{plain, "localhost", "https://localhost", false},
		{plain, "localhost", "null", false},
		{plain, "evil.test", "http://evil.test", false},
		{dev, "", "http://localhost:6274", true},
		{dev, "", "http://127.0.0.1", true},
		{dev, "", "http://localhost.evil.test", false},
		{dev, "", "file://localhost", false},
		{dev, "", "http://localhost:6274/", false},
		{dev, "", "http://localhost#x", false},
		{dev, "", "http://user@localhost", false},
		{dev, "", "http://localhost, http://evil.test", false},
		{dev, "", "http://evil.test", false},
		{set, "mcp.example", "", true},
		{set, "mcp.example:8443", "", true},
		{set, "public.example", "", true},
		{set, "evil.example", "", false},
		{set, "mcp.example", "https://app.example", true},
		{set, "mcp.example", "https://APP.example", true},
		{set, "mcp.example", "https://app.example.evil.test", false},
		{set, "mcp.example", "https://public.example", true},
		{set, "mcp.example", "http://app.example", false},
	} {
		var extra []string
		if tc.host != "" {
			extra = append(extra, "Host: "+tc.host)
		}
		if tc.origin != "" {
			extra = append(extra, "Origin: "+tc.origin)
		}
		resp, body := tc.rig.say("POST", own, hello("2025-11-25"), extra...)
		refused := resp.StatusCode == 403 || resp.StatusCode == 400 // 400: no parser accepts such a Host
		if (resp.StatusCode == 200) != tc.admitted || refused == tc.admitted {
			t.Errorf("Host %q Origin %q: %d %s, want admitted %v", tc.host, tc.origin, resp.StatusCode, body, tc.admitted)
		}
	}
}

func TestAnInvalidOriginIsRefused(t *testing.T) {
	r := start(t, nil)
	conn := r.dial()
	defer conn.Close()
	in := bufio.NewReader(conn)
	for _, extra := range [][]string{{"Origin:"}, {"Origin: "}, {"Origin: http://" + r.addr, "Origin: http://" + r.addr}, {"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}} {
		fmt.Fprint(conn, r.raw("POST", alice, hello("2025-11-25"), extra...))
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %d %v, want 403", extra, resp.StatusCode, err)
		}
	}
	if resp, body := r.say("POST", alice, hello("2025-11-25"), "Sec-Fetch-Site: same-origin"); resp.StatusCode != http.StatusOK {
		t.Errorf("the site's own page without an Origin: %d %s", resp.StatusCode, body)
	}
}

func TestThePublicAddressMayHaveAPath(t *testing.T) {
	r := start(t, func(o *Options) { o.BaseURL = "https://Public.example:443/ropewalk" })
	for origin, want := range map[string]int{"https://public.example": 200, "https://public.example/ropewalk": 403, "https://public.example:1": 403} {
		if resp, body := r.say("POST", alice, hello("2025-11-25"), "Host: public.example", "Origin: "+origin); resp.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", origin, resp.StatusCode, body, want)
		}
	}
}

func TestDiscoveryDocuments(t *testing.T) {
	r := start(t, nil)
	get := func(path string) (int, string) {
		req := r.url + path
		resp, err := r.client.Get(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text := make([]byte, 4096)
		n, _ := resp.Body.Read(text)
		return resp.StatusCode, string(text[:n])
	}
	for path, want := range map[string]string{
		"/.well-known/oauth-protected-resource":     `{"resource":"` + r.url + `","authorization_servers":["https://idp.test"],"bearer_methods_supported":["header"]}`,
		"/.well-known/oauth-protected-resource/mcp": `{"resource":"` + r.url + `/mcp","authorization_servers":["https://idp.test"],"bearer_methods_supported":["header"]}`,
		"/.well-known/oauth-authorization-server":   `{"issuer":"https://idp.test","x":1}`,
	} {
		if status, body := get(path); status != 200 || body != want {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
	for path := range map[string]bool{"/.well-known/oauth-protected-resource": true, "/.well-known/oauth-authorization-server": true} {
		for name, value := range map[string]string{"Host": "evil.test", "Origin": "http://evil.test"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(name, value)
			if name == "Host" {
				req.Host = value
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s with the %s %s: %d", path, name, value, resp.StatusCode)
			}
		}
	}
	r.people.down.Store(true)
	if status, _ := get("/.well-known/oauth-authorization-server"); status != 200 || r.people.meta.Load() != 1 {
		t.Errorf("the document should be cached: got %d after %d fetches", status, r.people.meta.Load())
	}
}

func TestTheProvidersDocumentIsRequestedOnceAMinuteAndOutlivesTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &people{}
		down.down.Store(true)
		if _, err := (&documents{access: down}).metadata(t.Context()); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("never fetched and down: %v", err)
		}
		p := &people{}
		kept := &documents{access: p}
		for range 100 {
			if _, err := kept.metadata(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.down.Store(true)
		<-time.After(2 * documentAge)
		if doc, err := kept.metadata(t.Context()); err != nil || !strings.Contains(string(doc), "idp.test") || p.meta.Load() != 2 {
			t.Errorf("%s %v after %d fetches", doc, err, p.meta.Load())
		}
	})
}

func TestDiscoveryWithoutAnAdapter(t *testing.T) {
	r := start(t, func(o *Options) { o.Access = &people{dev: true} })
	for path, want := range map[string]int{"/.well-known/oauth-protected-resource": 200, "/.well-known/oauth-authorization-server": 404} {
		resp, err := r.client.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}
