package httpapi

import (
	"context"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"
)

func TestOtherSitesCannotMakeChangesInDevMode(t *testing.T) {
	dev := newAccess()
	dev.dev = true
	h := open(t, dev, func(o *Options) {
		o.AllowedOrigins = []string{"https://app.example"}
		o.AllowedHosts = []string{"ropewalk.internal", "other.internal:8080"}
	})
	for _, c := range []struct {
		name, method, host, origin, site string
		allowed                          bool
	}{
		{"a program", "POST", "", "", "", true},
		{"a page from this server", "POST", "localhost:27247", "http://localhost:27247", "same-origin", true},
		{"a page from this machine", "POST", "127.0.0.1:27247", "http://localhost:5173", "cross-site", true},
		{"a page from this machine over IPv6", "POST", "[::1]:27247", "http://[::1]:5173", "", true},
		{"a page from a listed site", "POST", "", "https://app.example", "cross-site", true},
		{"a page from another site", "POST", "", "https://evil.example", "cross-site", false},
		{"a page from another site deletes", "DELETE", "", "https://evil.example", "", false},
		{"a page without an origin", "POST", "", "null", "", false},
		{"a cross-site request without Origin", "POST", "", "", "cross-site", false},
		{"a same-site request without Origin", "POST", "", "", "same-site", false},
		{"an address typed by a person", "POST", "", "", "none", true},
		{"a name that begins like this machine", "POST", "", "http://localhost.evil.example", "", false},
		{"an address that begins like this machine", "POST", "", "http://127.0.0.1.evil.example", "", false},
		{"an origin with a path", "POST", "", "http://localhost/evil", "", false},
		{"an origin with a user", "POST", "", "http://localhost@evil.example", "", false},
		{"an origin with another scheme", "POST", "", "file://localhost", "", false},
		{"another site reads", "GET", "", "https://evil.example", "cross-site", false},
		{"another site reads without Origin", "GET", "", "", "cross-site", false},
		{"a page from this machine reads", "GET", "localhost:27247", "http://127.0.0.1:5173", "cross-site", true},
		{"a page from a listed site reads", "GET", "", "https://app.example", "cross-site", true},
		{"a rebound name reads", "GET", "evil.example:27247", "", "", false},
		{"a rebound name makes a change", "POST", "evil.example:27247", "http://evil.example:27247", "same-origin", false},
		{"a name that begins like a loopback address", "GET", "127.0.0.1.evil.example", "", "", false},
		{"a name under localhost", "GET", "ropewalk.localhost:1", "", "", true},
		{"an address in the local network", "GET", "192.168.1.5:27247", "", "", false},
		{"an accepted host", "GET", "ropewalk.internal:27247", "", "", true},
		{"an accepted host makes a change", "POST", "Ropewalk.internal:27247", "http://ropewalk.internal:27247", "", true},
		{"an accepted host with its port", "GET", "other.internal:8080", "", "", true},
		{"an accepted host with another port", "GET", "other.internal:9090", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site}
			path := map[string]string{"POST": "/v1/apps/echo/stop", "DELETE": "/v1/apps/echo", "GET": "/v1/health"}[c.method]
			r := h.do(t, call{method: c.method, path: path, host: c.host, header: header})
			if got := r.StatusCode == 200; got != c.allowed || (!got && r.code() != "forbidden") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
}

func TestInDevModeOtherSitesCannotReadOrFollowEvents(t *testing.T) {
	dev := newAccess()
	dev.dev = true
	h := open(t, dev, func(o *Options) {
		o.Mounts = append(o.Mounts, func(r Router) {
			r.Get("/", func(c *fiber.Ctx) error { return c.SendString("page") })
		})
	})
	foreign := []map[string]string{
		{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
		{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
		{"Sec-Fetch-Site": "cross-site", "Referer": "https://evil.example/"},
	}
	own := []map[string]string{
		nil, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
		{"Origin": "http://" + h.addr}, {"Origin": "http://localhost:5173"}, {"Origin": "http://[::1]:1"},
	}
	for _, path := range []string{"/v1/conversations", "/v1/apps", "/v1/health", "/v1/openapi.json", "/v1/events", "/v1/metrics"} {
		for _, header := range foreign {
			r := h.do(t, call{method: "GET", path: path, header: header})
			if r.StatusCode != 403 || r.code() != "forbidden" {
				t.Errorf("%s with %v: %d %s", path, header, r.StatusCode, r.body)
			}
		}
		for _, header := range own {
			if status, allow := h.status(t, path, header); status != 200 || allow != "*" {
				t.Errorf("%s with %v: %d, Access-Control-Allow-Origin %q", path, header, status, allow)
			}
		}
	}
	for _, header := range append(own, foreign[3]) { // foreign[3] is another site's link to the console
		if status, _ := h.status(t, "/", header); status != 200 {
			t.Errorf("the page with %v: %d", header, status)
		}
	}
}

// status returns the status and the Access-Control-Allow-Origin of a GET. It does not read the body, which may be a
// stream.
func (h *testServer) status(t *testing.T, path string, header map[string]string) (status int, allow string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin")
}

func TestInDevModeABearerTokenDoesNotLetAnotherSiteIn(t *testing.T) {
	dev := newAccess()
	dev.dev = true
	h := open(t, dev, nil)
	r := h.do(t, call{method: "POST", path: "/v1/apps/echo/stop", header: map[string]string{"Origin": "https://evil.example", "Authorization": "Bearer x"}})
	if r.StatusCode != 403 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestACookieWorksOnlyForPagesOnItsOwnSite(t *testing.T) {
	a := newAccess()
	h := open(t, a, func(o *Options) {
		o.AllowedOrigins = []string{"https://app.example"}
		o.BaseURL = "https://Tools.example:443"
	})
	token, _ := a.Login(t.Context(), a.key)
	for _, c := range []struct {
		name, method, host, origin, site string
		bearer, allowed                  bool
	}{
		{"no browser", "POST", "", "", "", false, true},
		{"its own page", "POST", "ropewalk.example", "https://ropewalk.example", "same-origin", false, true},
		{"its own page behind TLS on the default port", "POST", "ropewalk.example", "https://ropewalk.example:443", "", false, true},
		{"its own host on another port", "POST", "ropewalk.example", "https://ropewalk.example:8443", "", false, false},
		{"the public address, through a proxy that does not forward the Host", "POST", "127.0.0.1:27247", "https://tools.example", "same-origin", false, true},
		{"the public address without TLS", "POST", "127.0.0.1:27247", "http://tools.example", "", false, false},
		{"a listed site", "POST", "ropewalk.example", "https://app.example", "cross-site", false, true},
		{"another site", "POST", "ropewalk.example", "https://evil.example", "cross-site", false, false},
		{"another site without Origin", "POST", "ropewalk.example", "", "cross-site", false, false},
		{"a page from this machine, which has no special rights outside dev mode", "POST", "ropewalk.example", "http://localhost:3000", "", false, false},
		{"another site deletes", "DELETE", "ropewalk.example", "https://evil.example", "", false, false},
		{"another site with a bearer token, which browsers never add on their own", "POST", "ropewalk.example", "https://evil.example", "", true, true},
		{"another site reads", "GET", "ropewalk.example", "https://evil.example", "cross-site", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Authorization": "", "Cookie": "service_session=" + token}
			if c.bearer {
				header["Authorization"] = "Bearer " + a.key
			}
			path := map[string]string{"POST": "/v1/apps/echo/stop", "DELETE": "/v1/apps/echo", "GET": "/v1/apps"}[c.method]
			r := h.do(t, call{method: c.method, path: path, host: c.host, header: header})
			if got := r.StatusCode == 200; got != c.allowed || (!got && r.code() != "forbidden") {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
}
