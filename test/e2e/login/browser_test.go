package login

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// cookieOf returns the cookie with this name that the response sets.
func cookieOf(t *testing.T, resp *http.Response, name string) *http.Cookie {
	t.Helper()
	for _, c := range resp.Cookies() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("%s sets no cookie %s: %v", resp.Request.URL.Path, name, resp.Header)
	return nil
}

func TestABrowserLogsInThroughTheProvider(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	base := "http://127.0.0.1:" + port
	back := base + "/v1/auth/callback"
	provider := testenv.StartOpenIDProvider(t, back)
	s := harness.Serve(t, harness.Flags("--port", port), harness.Config(harness.OIDCAuth(provider.Issuer, "clientId: app", "redirectUri: "+back, "organizationId: org_1")))
	begin := base + "/v1/auth/authorize?returnTo=/v1/auth/session"

	alice := harness.NewBrowser(t)
	alice.Stop = provider.Issuer
	sent := alice.Visit(t, begin)
	q := alice.At.Query()
	if sent.StatusCode != http.StatusFound || q.Get("code_challenge_method") != "S256" || len(q.Get("state")) < 22 || len(q.Get("nonce")) < 22 || q.Get("redirect_uri") != back {
		t.Fatalf("authorize: %d to %s", sent.StatusCode, alice.At)
	}
	if c := cookieOf(t, sent, "service_login"); !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/v1/auth/callback" || c.MaxAge != 600 {
		t.Errorf("the cookie that binds the login to the browser is %s", c)
	}

	alice.Stop = back
	alice.Visit(t, alice.At.String())
	answer := alice.At.String()
	if !strings.HasPrefix(answer, back) || alice.At.Query().Get("code") == "" || alice.At.Query().Get("state") != q.Get("state") {
		t.Fatalf("the provider sent the browser to %s", answer)
	}
	failed := func(what string, b *harness.Browser, address string) {
		t.Helper()
		b.Stop = base + "/?"
		if resp := b.Visit(t, address); resp.StatusCode != http.StatusFound || b.At.String() != base+"/?error=auth_failed" {
			t.Errorf("%s: %d to %s", what, resp.StatusCode, b.At)
		}
		if b.Cookie(t, "service_session", base) != "" {
			t.Errorf("%s: the browser got a session", what)
		}
	}
	failed("a state that the server never issued", harness.NewBrowser(t), back+"?code=abc&state=never")

	alice.Stop = base + "/v1/auth/session"
	done := alice.Visit(t, answer)
	if c := cookieOf(t, done, "service_session"); done.StatusCode != http.StatusFound || alice.At.Path != "/v1/auth/session" || !c.HttpOnly ||
		c.SameSite != http.SameSiteLaxMode || c.MaxAge != 604800 || c.Path != "/" {
		t.Errorf("callback: %d to %s with %s", done.StatusCode, alice.At, c)
	}
	session := "Cookie: service_session=" + alice.Cookie(t, "service_session", base)
	if a := s.Do(t, "GET", "/v1/auth/session", nil, session); a.Status != 200 || a.Object(t)["authenticated"] != true ||
		!strings.Contains(a.Body, `"email":"alice@example.com"`) || !strings.Contains(a.Body, `"displayName":"Alice"`) || !strings.Contains(a.Body, `"orgRole":"admin"`) {
		t.Errorf("the session: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", "/v1/apps", nil, session); a.Status != 200 {
		t.Errorf("/v1 with the cookie: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", "/mcp", harness.Initialize, session, "X-Workspace-Id: "+harness.Workspace, "Accept: application/json, text/event-stream"); a.Status != 401 {
		t.Errorf("/mcp accepts a cookie: %d %s", a.Status, a.Body)
	}

	replay := harness.NewBrowser(t)
	failed("the same answer again", replay, answer)

	victim, attacker := harness.NewBrowser(t), harness.NewBrowser(t)
	attacker.Stop = back
	attacker.Visit(t, begin)
	failed("another browser's answer", victim, attacker.At.String())

	if a := s.Do(t, "POST", "/v1/auth/logout", `{}`, session); a.Status != 200 {
		t.Errorf("logout: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", "/v1/auth/session", nil, session); a.Status != 401 || a.Body != "" {
		t.Errorf("after logout: %d %q", a.Status, a.Body)
	}
	for _, secret := range []string{alice.Cookie(t, "service_session", base), q.Get("nonce"), q.Get("state")} {
		if secret != "" && strings.Contains(s.Log.String(), secret) {
			t.Errorf("the log contains %q", secret)
		}
	}
}

// logged waits until the server's log contains a text. It returns false if this takes too long.
func logged(s *harness.Server, text string) bool {
	return testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Log.String(), text) })
}

// A malicious provider redirects a browser, which started a login with it, to another of the server's providers, with
// the same client id, state and challenge. The malicious provider must not receive the other provider's code.
func TestAProviderCannotObtainAnotherProvidersCodes(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	base := "http://127.0.0.1:" + port
	back := base + "/v1/auth/callback"
	honest, malicious := testenv.StartOpenIDProvider(t, back), testenv.StartOpenIDProvider(t, back)
	entry := func(name, issuer string) string {
		return "  - {name: " + name + ", adapter: oidc, issuer: \"" + issuer + "\", clientId: app, redirectUri: \"" + back + "\"}\n"
	}
	s := harness.Serve(t, harness.Flags("--port", port), harness.Config("auth:\n"+entry("honest", honest.Issuer)+entry("malicious", malicious.Issuer)))
	answerOf := func(from, to string) *harness.Browser {
		t.Helper()
		b := harness.NewBrowser(t)
		b.Stop = malicious.Issuer
		b.Visit(t, base+"/v1/auth/authorize?provider=malicious&returnTo=/v1/auth/session")
		sent := b.At.String()
		if !strings.HasPrefix(sent, from) {
			t.Fatalf("the browser was sent to %s", sent)
		}
		b.Stop = back
		b.Visit(t, to+strings.TrimPrefix(sent, from))
		if b.At.Query().Get("code") == "" || b.At.Query().Get("iss") != to {
			t.Fatalf("the provider sent the browser to %s", b.At)
		}
		return b
	}
	finish := func(b *harness.Browser, answer string) string {
		t.Helper()
		b.Stop = base + "/?"
		b.Visit(t, answer)
		return b.Cookie(t, "service_session", base)
	}

	mixed := answerOf(malicious.Issuer, honest.Issuer)
	if finish(mixed, mixed.At.String()) != "" || mixed.At.String() != base+"/?error=auth_failed" || !logged(s, "has a different issuer (iss)") {
		t.Errorf("after the other provider's answer, the browser is at %s", mixed.At)
	}
	stripped := answerOf(malicious.Issuer, honest.Issuer)
	q := stripped.At.Query()
	q.Del("iss")
	if finish(stripped, back+"?"+q.Encode()) != "" || !logged(s, "has no issuer (iss)") {
		t.Errorf("after the same answer without its issuer, the browser is at %s", stripped.At)
	}
	if own := answerOf(malicious.Issuer, malicious.Issuer); finish(own, own.At.String()) == "" {
		t.Errorf("an undisturbed login ended at %s", own.At)
	}
}
