package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
)

const anonymous = "" // as an Authorization value: do not send the header

func TestLoginSetsTheDocumentedCookie(t *testing.T) {
	h := open(t, newAccess(), nil)
	for host, attributes := range map[string]string{
		"ropewalk.example":   "Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict",
		"192.168.1.5:27247":  "Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict",
		"localhost:27247":    "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict",
		"127.0.0.1":          "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict",
		"[::1]:27247":        "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict",
		"localhost.evil.com": "Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Strict",
	} {
		h.access.attempts = map[string]int{}
		r := h.do(t, call{method: "POST", path: "/v1/auth/login", host: host, body: `{"key":"` + h.access.key + `"}`, header: map[string]string{"Authorization": anonymous}})
		name, rest, _ := strings.Cut(r.Header.Get("Set-Cookie"), "=")
		token, got, _ := strings.Cut(rest, "; ")
		if r.StatusCode != 200 || r.body != `{"ok":true}` || name != "service_session" || token == "" || strings.Contains(token, h.access.key) || got != attributes {
			t.Errorf("%s: %d %s %q", host, r.StatusCode, r.body, r.Header.Get("Set-Cookie"))
		}
	}
}

func TestACookieReceivedOverTLSIsSecure(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		secure bool
	}{
		"a proxy on this machine that does not forward the Host": {nil, true},
		"a client that is not a trusted proxy":                   {func(o *Options) { o.TrustedProxies = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, newAccess(), c.change)
			r := h.do(t, call{method: "POST", path: "/v1/auth/login", host: "127.0.0.1:27247", body: `{"key":"` + h.access.key + `"}`,
				header: map[string]string{"Authorization": anonymous, "X-Forwarded-Proto": "https"}})
			if r.StatusCode != 200 || r.Cookies()[0].Secure != c.secure {
				t.Errorf("%d %q", r.StatusCode, r.Header.Get("Set-Cookie"))
			}
		})
	}
}

func TestACookieIsValidUntilLogout(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "POST", path: "/v1/auth/login", body: `{"key":"` + h.access.key + `"}`, header: map[string]string{"Authorization": anonymous}})
	header := map[string]string{"Authorization": anonymous, "Cookie": "service_session=" + r.Cookies()[0].Value}
	if r := h.do(t, call{method: "GET", path: "/v1/apps", header: header}); r.StatusCode != 200 {
		t.Fatalf("with the cookie: %d", r.StatusCode)
	}
	r = h.do(t, call{method: "POST", path: "/v1/auth/logout", header: header})
	if got := r.Header.Get("Set-Cookie"); r.StatusCode != 200 || r.body != `{"ok":true}` || got != "service_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict" {
		t.Errorf("logout: %d %s %q", r.StatusCode, r.body, got)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/auth/session", header: header}); r.StatusCode != 401 || r.body != "" {
		t.Errorf("after logout: %d %q", r.StatusCode, r.body)
	}
	if r := h.do(t, call{method: "POST", path: "/v1/auth/logout"}); r.StatusCode != 200 { // a bearer token has no session to end
		t.Errorf("logout with a bearer token: %d %s", r.StatusCode, r.body)
	}
}

func TestABearerTokenTakesPrecedenceOverTheCookie(t *testing.T) {
	h := open(t, newAccess(), nil)
	token, _ := h.access.Login(t.Context(), h.access.key)
	r := h.do(t, call{method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "Bearer wrong", "Cookie": "service_session=" + token}})
	if r.StatusCode != 401 {
		t.Errorf("an invalid bearer token with a valid cookie: %d", r.StatusCode)
	}
	r = h.do(t, call{method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "Basic eDp5", "Cookie": "service_session=" + token}})
	if r.StatusCode != 200 {
		t.Errorf("another scheme with a valid cookie: %d", r.StatusCode)
	}
	if r := h.do(t, call{method: "GET", path: "/v1/apps", header: map[string]string{"Authorization": "bearer " + h.access.key}}); r.StatusCode != 200 {
		t.Errorf("the scheme in lower case: %d", r.StatusCode)
	}
}

func TestLoginErrors(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "POST", path: "/v1/auth/login", body: `{"key":"wrong"}`})
	if r.StatusCode != 401 || r.body != "" || r.Header.Get("Set-Cookie") != "" || r.Header.Get("Content-Type") != "" {
		t.Errorf("an invalid key: %d %q %v", r.StatusCode, r.body, r.Header)
	}
	from := func(client string) reply {
		return h.do(t, call{method: "POST", path: "/v1/auth/login", body: `{"key":"wrong"}`, header: map[string]string{"X-Forwarded-For": client}})
	}
	for range attemptsAllowed {
		from("203.0.113.1")
	}
	if r := from("203.0.113.1"); r.StatusCode != 429 || r.code() != "rate_limited" || r.Header.Get("Retry-After") != "6" {
		t.Errorf("one attempt too many: %d %s %q", r.StatusCode, r.body, r.Header.Get("Retry-After"))
	}
	if r := from("10.0.0.1, 203.0.113.1"); r.StatusCode != 429 {
		t.Errorf("a forged hop was mistaken for another client: %d", r.StatusCode)
	}
	start := time.Now()
	r = h.do(t, call{method: "POST", path: "/v1/auth/login", body: `{"key":"` + h.access.key + `"}`, header: map[string]string{"X-Forwarded-For": "203.0.113.2"}})
	if r.StatusCode != 200 || time.Since(start) > 20*time.Second {
		t.Errorf("another client: %d after %v", r.StatusCode, time.Since(start))
	}
}

func TestAnInvalidBodyDoesNotCountAsALoginAttempt(t *testing.T) {
	h := open(t, newAccess(), nil)
	for range attemptsAllowed + 2 {
		if r := h.do(t, call{method: "POST", path: "/v1/auth/login", body: `{"key":1}`}); r.StatusCode != 400 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
}

func TestXForwardedForIsUsedOnlyFromTrustedProxies(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) { o.TrustedProxies = nil })
	for i := range attemptsAllowed + 1 {
		r := h.do(t, call{method: "POST", path: "/v1/auth/login", body: `{"key":"wrong"}`, header: map[string]string{"X-Forwarded-For": "203.0.113." + string(rune('1'+i))}})
		if want := map[bool]int{true: 429, false: 401}[i == attemptsAllowed]; r.StatusCode != want {
			t.Errorf("attempt %d: %d, want %d", i, r.StatusCode, want)
		}
	}
}

func TestTheSessionIdentifiesItsCaller(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_alice", Role: core.RoleAdmin})
	r := h.do(t, call{method: "GET", path: "/v1/auth/session", header: map[string]string{"Authorization": "Bearer alice"}})
	if r.body != `{"authenticated":true,"user":{"id":"alice","email":"alice@example.com","displayName":"","orgRole":"member"}}` {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestBrowserLogin(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.adapter = true
	h.access.user("alice", core.RoleMember, core.Workspace{ID: "ws_alice", Role: core.RoleAdmin})
	get := func(path, cookie, proto string) reply {
		return h.do(t, call{method: "GET", path: path, host: "ropewalk.example", header: map[string]string{"Authorization": anonymous, "Cookie": cookie, "X-Forwarded-Proto": proto}})
	}
	r := get("/v1/auth/authorize?returnTo=/apps", "", "https")
	if r.StatusCode != 302 || r.Header.Get("Location") != "https://idp.example/authorize?redirect_uri=https://ropewalk.example/v1/auth/callback&state=s1&return=/apps" {
		t.Errorf("authorize: %d %q", r.StatusCode, r.Header.Get("Location"))
	}
	if got := r.Header.Get("Set-Cookie"); got != "service_login=b1; Path=/v1/auth/callback; Max-Age=600; HttpOnly; Secure; SameSite=Lax" {
		t.Errorf("authorize sets %q", got)
	}
	r = get("/v1/auth/callback?state=s1&code=c1", "service_login=b1", "")
	cookies := r.Header.Values("Set-Cookie")
	if r.StatusCode != 302 || r.Header.Get("Location") != "/apps?tab=1" || len(cookies) != 2 ||
		cookies[0] != "service_login=; Path=/v1/auth/callback; Max-Age=0; HttpOnly; Secure; SameSite=Lax" ||
		cookies[1] != "service_session=idp-cookie; Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax" {
		t.Errorf("callback: %d %v", r.StatusCode, r.Header)
	}
	for name, c := range map[string][2]string{
		"an unknown state":    {"?state=s2&code=c1", "service_login=b1"},
		"another browser":     {"?state=s1&code=c1", "service_login=b2"},
		"no cookie":           {"?state=s1&code=c1", ""},
		"an invalid code":     {"?state=s1&code=c2", "service_login=b1"},
		"another provider":    {"?state=s1&code=c1&iss=https://another.example", "service_login=b1"},
		"the person declined": {"?state=s1&error=access_denied", "service_login=b1"},
		"nothing at all":      {"", ""},
	} {
		r := get("/v1/auth/callback"+c[0], c[1], "")
		if r.StatusCode != 302 || r.Header.Get("Location") != "/?error=auth_failed" || strings.Contains(strings.Join(r.Header.Values("Set-Cookie"), " "), authn.SessionCookie) {
			t.Errorf("%s: %d %v", name, r.StatusCode, r.Header)
		}
	}
}

func TestBrowserLoginNeverRedirectsToAnotherSite(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.adapter = true
	for _, to := range []string{"https://evil.example", "//evil.example", "/%5Cevil.example", "evil", "/%0d%0aX: y", ""} {
		r := h.do(t, call{method: "GET", path: "/v1/auth/authorize?returnTo=" + to})
		if to == "" {
			if r.StatusCode != 302 {
				t.Errorf("without returnTo: %d", r.StatusCode)
			}
		} else if r.StatusCode != 400 || r.code() != "bad_request" {
			t.Errorf("%q: %d %s", to, r.StatusCode, r.body)
		}
	}
}

func TestBrowserLoginsAreLimitedPerClient(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.adapter = true
	from := func(client string) reply {
		return h.do(t, call{method: "GET", path: "/v1/auth/authorize", header: map[string]string{"X-Forwarded-For": client}})
	}
	for range attemptsAllowed {
		if r := from("203.0.113.1"); r.StatusCode != 302 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	if r := from("203.0.113.1"); r.StatusCode != 429 || r.code() != "rate_limited" || r.Header.Get("Retry-After") == "" {
		t.Errorf("one attempt too many: %d %s", r.StatusCode, r.body)
	}
	if r := from("203.0.113.2"); r.StatusCode != 302 {
		t.Errorf("another client: %d %s", r.StatusCode, r.body)
	}
}

func TestBrowserLoginNeedsAnAdapter(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, path := range []string{"/v1/auth/authorize", "/v1/auth/callback?state=s1&code=c1"} {
		if r := h.do(t, call{method: http.MethodGet, path: path}); r.StatusCode != 400 || r.code() != "not_configured" {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
}

func TestThePersonChoosesOneOfSeveralProviders(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.adapter, h.access.several = true, []string{"okta", "<staff>"}
	r := h.do(t, call{method: http.MethodGet, path: "/v1/auth/authorize?returnTo=/apps"})
	if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	for _, want := range []string{`href="/v1/auth/authorize?provider=okta&amp;returnTo=%2Fapps"`, ">okta</a>", "&lt;staff&gt;"} {
		if !strings.Contains(r.body, want) {
			t.Errorf("the page does not contain %s: %s", want, r.body)
		}
	}
	r = h.do(t, call{method: http.MethodGet, path: "/v1/auth/authorize?provider=okta&returnTo=/apps"})
	if r.StatusCode != 302 || !strings.HasPrefix(r.Header.Get("Location"), "https://idp.example/authorizeokta?") {
		t.Errorf("a chosen provider: %d %q", r.StatusCode, r.Header.Get("Location"))
	}
}

func TestTheConfiguredRedirectURIIsUsed(t *testing.T) {
	h := open(t, newAccess(), func(o *Options) { o.RedirectURI = "https://public.example/v1/auth/callback" })
	h.access.adapter = true
	r := h.do(t, call{method: "GET", path: "/v1/auth/authorize", host: "inside:1"})
	if !strings.Contains(r.Header.Get("Location"), "redirect_uri=https://public.example/v1/auth/callback&") {
		t.Errorf("%q", r.Header.Get("Location"))
	}
}

func TestTheReasonForAFailedBrowserLoginIsLoggedAsAWarning(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.access.adapter = true
	h.do(t, call{method: "GET", path: "/v1/auth/callback?state=s9&error=access_denied&error_description=not+assigned"})
	log := h.log.String()
	for _, want := range []string{"[WARN]", "browser login failed", "the state is unknown", "access_denied", "not assigned"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not contain %q: %s", want, log)
		}
	}
}

func TestBackchannelLogoutAcceptsExactlyOneLogoutTokenInAForm(t *testing.T) {
	a := newAccess()
	a.cookies["idp-cookie"] = core.Owner()
	h := open(t, a, func(*Options) {})
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		status int
	}{
		"json":         {map[string]string{"Content-Type": "application/json"}, `{"logout_token":"logout-of-alice"}`, 415},
		"in the query": {form, "", 400},
		"twice":        {form, "logout_token=logout-of-alice&logout_token=logout-of-alice", 400},
		"unknown":      {form, "logout_token=x", 400},
	} {
		if r := h.do(t, call{method: "POST", path: "/v1/auth/backchannel-logout?logout_token=logout-of-alice", header: c.header, body: c.body}); r.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	logout := call{method: "POST", path: "/v1/auth/backchannel-logout", header: form, body: "logout_token=logout-of-alice"}
	if r := h.do(t, logout); r.StatusCode != 200 || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s, Cache-Control %q", r.StatusCode, r.body, r.Header.Get("Cache-Control"))
	}
	if r := h.do(t, logout); r.StatusCode != 400 {
		t.Errorf("again: %d %s", r.StatusCode, r.body)
	}
}
