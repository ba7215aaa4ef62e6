package login

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestTheLoginCookie(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	login := s.Do(t, "POST", "/v1/auth/login", `{"key":"`+harness.APIKey+`"}`)
	if login.Status != 200 || login.Body != `{"ok":true}` {
		t.Fatalf("login: %d %s", login.Status, login.Body)
	}
	cookie, err := http.ParseSetCookie(login.Header.Get("Set-Cookie"))
	if err != nil || cookie.Name != "service_session" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode ||
		cookie.Path != "/" || cookie.MaxAge != 604800 || cookie.Secure || len(cookie.Value) < 20 || strings.Contains(cookie.Value, harness.APIKey) {
		t.Errorf("%q: %v", login.Header.Get("Set-Cookie"), err)
	}
	other := s.Do(t, "POST", "/v1/auth/login", `{"key":"`+harness.APIKey+`"}`, "Host: tools.example.com")
	if !strings.Contains(other.Header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("for another host: %d %q", other.Status, other.Header.Get("Set-Cookie"))
	}

	mine := "Cookie: service_session=" + cookie.Value
	if a := s.Do(t, "GET", "/v1/auth/session", nil, mine); a.Status != 200 || a.Object(t)["authenticated"] != true {
		t.Errorf("session: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", "/v1/apps", nil, mine, "Authorization: Bearer wrong-key-0123456789"); a.Status != 401 {
		t.Errorf("with an invalid bearer token and the cookie: %d", a.Status)
	}
	if a := s.Do(t, "POST", "/v1/auth/logout", nil, mine, "Origin: https://evil.example"); a.Status != 403 {
		t.Errorf("a page on another site, with the cookie: %d %s", a.Status, a.Body)
	}
	s.Stop()
	s.Start()
	if a := s.Do(t, "GET", "/v1/auth/session", nil, mine); a.Status != 200 {
		t.Errorf("after a restart of the server: %d", a.Status)
	}
	logout := s.Do(t, "POST", "/v1/auth/logout", nil, mine)
	if logout.Status != 200 || logout.Body != `{"ok":true}` || !strings.Contains(logout.Header.Get("Set-Cookie"), "service_session=; Path=/; Max-Age=0") {
		t.Errorf("logout: %d %q", logout.Status, logout.Header.Get("Set-Cookie"))
	}
	if a := s.Do(t, "GET", "/v1/auth/session", nil, mine); a.Status != 401 || a.Body != "" {
		t.Errorf("after the logout: %d %s", a.Status, a.Body)
	}

	again := s.Do(t, "POST", "/v1/auth/login", `{"key":"`+harness.APIKey+`"}`).Header.Get("Set-Cookie")
	value, _, _ := strings.Cut(strings.TrimPrefix(again, "service_session="), ";")
	s.Stop()
	s.Environ = append(s.Environ, "SERVICE_API_KEY=another-key-0123456789")
	s.Start()
	if a := s.Do(t, "GET", "/v1/auth/session", nil, "Cookie: service_session="+value); a.Status != 401 {
		t.Errorf("after the key was changed: %d", a.Status)
	}
}

func TestFailedLoginsAreLimited(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	for range 40 {
		a := s.Do(t, "POST", "/v1/auth/login", `{"key":"guessed-key-0123456789"}`)
		if a.Status == 401 && a.Body == "" {
			continue
		}
		wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != 429 || a.Object(t)["error"] != "rate_limited" || err != nil || wait < 1 {
			t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
		}
		if a := s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+harness.APIKey); a.Status != 200 {
			t.Errorf("the valid key should not be locked out: %d", a.Status)
		}
		return
	}
	t.Error("of 40 guesses in a row, some should not be checked")
}

func TestAShortKeyIsRejected(t *testing.T) {
	t.Parallel()
	output, status := harness.Command(t, []string{"SERVICE_API_KEY=short"}, "serve", "--port", "0", "--home", t.TempDir())
	if status != 1 || !strings.Contains(output, "SERVICE_API_KEY") || !strings.Contains(output, "8") {
		t.Errorf("exit status %d: %s", status, output)
	}
}
