package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// What browsers are notified: CORS in its four cases (docs/api.md 1), and the cookie (docs/api.md 2).

func TestCORSInItsFourCases(t *testing.T) {
	t.Parallel()
	dev := serve(t)
	closed := serve(t, env("SERVICE_API_KEY="+apiKey))
	listed := serve(t, env("SERVICE_API_KEY="+apiKey), env("ALLOWED_ORIGINS=https://app.example, https://two.example"))
	const allowed, other = "https://app.example", "https://evil.example"

	for _, c := range []struct {
		what        string
		s           *server
		origin      string
		allow       string
		credentials string
	}{
		{"dev mode: everyone", dev, other, "*", ""},
		{"a listed origin", listed, allowed, allowed, "true"},
		{"the other listed origin", listed, "https://two.example", "https://two.example", "true"},
		{"an origin that is not listed", listed, other, "", ""},
		{"nothing listed", closed, allowed, "", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, path := range []string{"/v1/health", "/v1/apps", "/v1/nothing", "/mcp"} {
				h := c.s.do(t, "GET", path, nil, "Origin: "+c.origin).header
				if h.Get("Access-Control-Allow-Origin") != c.allow || h.Get("Access-Control-Allow-Credentials") != c.credentials {
					t.Errorf("GET %s: %v", path, h)
				}
				if exposed := h.Get("Access-Control-Expose-Headers"); (c.allow != "") != strings.HasPrefix(exposed, "Mcp-Session-Id, Mcp-Protocol-Version, X-Request-Id") {
					t.Errorf("GET %s exposes %q", path, exposed)
				}
				if varies := h.Get("Vary"); (c.s == listed) != (varies == "Origin") {
					t.Errorf("GET %s: Vary %q", path, varies)
				}
				a := c.s.do(t, "OPTIONS", path, nil, "Origin: "+c.origin, "Access-Control-Request-Method: POST")
				if a.status != 204 || a.body != "" || a.header.Get("Access-Control-Allow-Origin") != c.allow {
					t.Errorf("preflight of %s: %d %v", path, a.status, a.header)
				}
				if c.allow != "" && (a.header.Get("Access-Control-Allow-Methods") != "GET, POST, PATCH, DELETE, OPTIONS" ||
					!strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "X-Workspace-Id")) {
					t.Errorf("preflight of %s: %v", path, a.header)
				}
			}
		})
	}
}

func TestTheCookieOfALogin(t *testing.T) {
	t.Parallel()
	s := serve(t, env("SERVICE_API_KEY="+apiKey))
	login := s.do(t, "POST", "/v1/auth/login", `{"key":"`+apiKey+`"}`)
	if login.status != 200 || login.body != `{"ok":true}` {
		t.Fatalf("login: %d %s", login.status, login.body)
	}
	cookie, err := http.ParseSetCookie(login.header.Get("Set-Cookie"))
	if err != nil || cookie.Name != "service_session" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode ||
		cookie.Path != "/" || cookie.MaxAge != 604800 || cookie.Secure || len(cookie.Value) < 20 || strings.Contains(cookie.Value, apiKey) {
		t.Errorf("%q: %v", login.header.Get("Set-Cookie"), err)
	}
	away := s.do(t, "POST", "/v1/auth/login", `{"key":"`+apiKey+`"}`, "Host: tools.example.com")
	if !strings.Contains(away.header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("for another host: %d %q", away.status, away.header.Get("Set-Cookie"))
	}

	mine := "Cookie: service_session=" + cookie.Value
	if a := s.do(t, "GET", "/v1/auth/session", nil, mine); a.status != 200 || a.object(t)["authenticated"] != true {
		t.Errorf("session: %d %s", a.status, a.body)
	}
	if a := s.do(t, "GET", "/v1/apps", nil, mine, "Authorization: Bearer wrong-key-0123456789"); a.status != 401 {
		t.Errorf("the bearer is read before the cookie: %d", a.status)
	}
	if a := s.do(t, "POST", "/v1/auth/logout", nil, mine, "Origin: https://evil.example"); a.status != 403 {
		t.Errorf("another site's page with the cookie: %d %s", a.status, a.body)
	}
	s.terminate()
	s.start()
	if a := s.do(t, "GET", "/v1/auth/session", nil, mine); a.status != 200 {
		t.Errorf("after a new start of the server: %d", a.status)
	}
	logout := s.do(t, "POST", "/v1/auth/logout", nil, mine)
	if logout.status != 200 || logout.body != `{"ok":true}` || !strings.Contains(logout.header.Get("Set-Cookie"), "service_session=; Path=/; Max-Age=0") {
		t.Errorf("logout: %d %q", logout.status, logout.header.Get("Set-Cookie"))
	}
	if a := s.do(t, "GET", "/v1/auth/session", nil, mine); a.status != 401 || a.body != "" {
		t.Errorf("after the logout: %d %s", a.status, a.body)
	}

	again := s.do(t, "POST", "/v1/auth/login", `{"key":"`+apiKey+`"}`).header.Get("Set-Cookie")
	value, _, _ := strings.Cut(strings.TrimPrefix(again, "service_session="), ";")
	s.terminate()
	s.env = append(s.env, "SERVICE_API_KEY=another-key-0123456789")
	s.start()
	if a := s.do(t, "GET", "/v1/auth/session", nil, "Cookie: service_session="+value); a.status != 401 {
		t.Errorf("after the key was changed: %d", a.status)
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	s := serve(t, env("SERVICE_API_KEY="+apiKey))
	for range 40 {
		a := s.do(t, "POST", "/v1/auth/login", `{"key":"guessed-key-0123456789"}`)
		if a.status == 401 && a.body == "" {
			continue
		}
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != 429 || a.object(t)["error"] != "rate_limited" || err != nil || wait < 1 {
			t.Fatalf("%d %v %s", a.status, a.header, a.body)
		}
		if a := s.do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+apiKey); a.status != 200 {
			t.Errorf("who has the key is locked out: %d", a.status)
		}
		return
	}
	t.Error("40 guesses in a row were judged")
}

func TestAKeyThatIsTooShortIsNoKey(t *testing.T) {
	t.Parallel()
	said, status := command(t, []string{"SERVICE_API_KEY=short"}, "serve", "--port", "0", "--home", t.TempDir())
	if status != 1 || !strings.Contains(said, "SERVICE_API_KEY") || !strings.Contains(said, "8") {
		t.Errorf("exit status %d: %s", status, said)
	}
}
