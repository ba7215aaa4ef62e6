package e2e

import (
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// freePort is a port for a server whose address its provider must know beforehand.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// browser keeps cookies and follows redirects, as a browser does, but stops where it is notified to.
type browser struct {
	client http.Client
	stop   string // a URL with this prefix is not visited, "" for none
	at     *url.URL
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{client: http.Client{Jar: jar}}
	b.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if b.at = r.URL; b.stop != "" && strings.HasPrefix(r.URL.String(), b.stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return b
}

func (b *browser) visit(t *testing.T, address string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.at = req.URL
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// cookie is the value of a cookie that the browser shows at an address, "" when there is none.
func (b *browser) cookie(t *testing.T, name, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// cookieOf is a cookie that an answer sets.
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
	port := freePort(t)
	base := "http://127.0.0.1:" + port
	back := base + "/v1/auth/callback"
	provider := testenv.StartOpenIDProvider(t, back)
	s := serve(t, flag("--port", port), config(oidcAuth(provider.Issuer, "clientId: app", "redirectUri: "+back, "organizationId: org_1")))
	begin := base + "/v1/auth/authorize?returnTo=/v1/auth/session"

	alice := newBrowser(t)
	alice.stop = provider.Issuer
	sent := alice.visit(t, begin)
	q := alice.at.Query()
	if sent.StatusCode != http.StatusFound || q.Get("code_challenge_method") != "S256" || len(q.Get("state")) < 22 || len(q.Get("nonce")) < 22 || q.Get("redirect_uri") != back {
		t.Fatalf("authorize: %d to %s", sent.StatusCode, alice.at)
	}
	if c := cookieOf(t, sent, "service_login"); !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/v1/auth/callback" || c.MaxAge != 600 {
		t.Errorf("the login is bound to the browser by %s", c)
	}

	alice.stop = back
	alice.visit(t, alice.at.String())
	answer := alice.at.String()
	if !strings.HasPrefix(answer, back) || alice.at.Query().Get("code") == "" || alice.at.Query().Get("state") != q.Get("state") {
		t.Fatalf("the provider sent the browser to %s", answer)
	}
	failed := func(what string, b *browser, address string) {
		t.Helper()
		b.stop = base + "/?"
		if resp := b.visit(t, address); resp.StatusCode != http.StatusFound || b.at.String() != base+"/?error=auth_failed" {
			t.Errorf("%s: %d to %s", what, resp.StatusCode, b.at)
		}
		if b.cookie(t, "service_session", base) != "" {
			t.Errorf("%s: it got a session", what)
		}
	}
	failed("a state that was never given", newBrowser(t), back+"?code=abc&state=never")

	alice.stop = base + "/v1/auth/session"
	done := alice.visit(t, answer)
	if c := cookieOf(t, done, "service_session"); done.StatusCode != http.StatusFound || alice.at.Path != "/v1/auth/session" || !c.HttpOnly ||
		c.SameSite != http.SameSiteLaxMode || c.MaxAge != 604800 || c.Path != "/" {
		t.Errorf("callback: %d to %s with %s", done.StatusCode, alice.at, c)
	}
	session := "Cookie: service_session=" + alice.cookie(t, "service_session", base)
	if a := s.do(t, "GET", "/v1/auth/session", nil, session); a.status != 200 || a.object(t)["authenticated"] != true ||
		!strings.Contains(a.body, `"email":"alice@example.com"`) || !strings.Contains(a.body, `"displayName":"Alice"`) || !strings.Contains(a.body, `"orgRole":"admin"`) {
		t.Errorf("the session: %d %s", a.status, a.body)
	}
	if a := s.do(t, "GET", "/v1/apps", nil, session); a.status != 200 {
		t.Errorf("/v1 with the cookie: %d %s", a.status, a.body)
	}
	if a := s.do(t, "POST", "/mcp", initialize, session, "X-Workspace-Id: "+workspace, "Accept: application/json, text/event-stream"); a.status != 401 {
		t.Errorf("/mcp takes a cookie: %d %s", a.status, a.body)
	}

	replay := newBrowser(t)
	failed("the same answer again", replay, answer)

	victim, attacker := newBrowser(t), newBrowser(t)
	attacker.stop = back
	attacker.visit(t, begin)
	failed("an answer that another browser fetched", victim, attacker.at.String())

	if a := s.do(t, "POST", "/v1/auth/logout", `{}`, session); a.status != 200 {
		t.Errorf("logout: %d %s", a.status, a.body)
	}
	if a := s.do(t, "GET", "/v1/auth/session", nil, session); a.status != 401 || a.body != "" {
		t.Errorf("after logout: %d %q", a.status, a.body)
	}
	for _, secret := range []string{alice.cookie(t, "service_session", base), q.Get("nonce"), q.Get("state")} {
		if secret != "" && strings.Contains(s.log.String(), secret) {
			t.Errorf("the log shows %q", secret)
		}
	}
}
