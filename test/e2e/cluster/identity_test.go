package cluster

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// clientSecret is the secret of the client named "confidential" at the provider.
const clientSecret = "confidential-secret-0123456789"

// trustingServers is two servers that share a database and trust the same provider.
type trustingServers struct {
	provider *testenv.OpenIDProvider
	back     string // the redirect URI of the provider's clients, on the first server
	servers  []*harness.Server
}

// trust starts the servers and the provider. The provider sends its logout tokens to the first server.
func trust(t *testing.T, settings ...string) *trustingServers {
	t.Helper()
	port := harness.FreePort(t)
	d := &trustingServers{back: "http://127.0.0.1:" + port + "/v1/auth/callback"}
	d.provider = testenv.StartOpenIDProvider(t, d.back)
	database := harness.Databases.New(t)
	settings = append([]string{"clientId: confidential", "clientSecret: " + clientSecret, "redirectUri: " + d.back, "organizationId: org_1"}, settings...)
	for _, at := range []string{port, "0"} {
		d.servers = append(d.servers, harness.Serve(t, func(s *harness.Server) { s.Database = database }, harness.Flags("--port", at),
			harness.Config(harness.OIDCAuth(d.provider.Issuer, settings...)+"storage: {url: '"+database+"'}\n")))
	}
	return d
}

// sessions opens a session on each server with the token.
func (d *trustingServers) sessions(t *testing.T, token string) (opened []*harness.MCPClient) {
	t.Helper()
	for _, s := range d.servers {
		opened = append(opened, s.OpenSession(t, "Authorization", "Bearer "+token))
	}
	return opened
}

// allReturn reports whether each session responds to a ping with one of the statuses.
func allReturn(t *testing.T, sessions []*harness.MCPClient, statuses ...int) bool {
	t.Helper()
	for _, c := range sessions {
		got, wanted := pings(t, c), false
		for _, status := range statuses {
			wanted = wanted || got == status
		}
		if !wanted {
			return false
		}
	}
	return true
}

// The provider sends no notification, so the server asks the provider. It asks about each token at most once a minute
// (docs/identity.md), and about a login within auth.recheckSeconds. It also asks about the token of an open /mcp
// stream, but only every 4 minutes. A test in core/mcphttp covers that.
func TestATokenThatIsRevokedAtTheProviderEndsOnAllServers(t *testing.T) {
	t.Parallel()
	d := trust(t, "introspect: true")
	token := harness.NewBrowser(t).PersonToken(t, d.provider.Issuer, "app", "", d.back, "")
	alice, bob := d.sessions(t, token), d.bob(t)

	began := time.Now()
	harness.RevokeToken(t, d.provider.Issuer, "app", "", token)
	d.refuses(t, alice, began)
	if !allReturn(t, bob, http.StatusOK) {
		t.Error("another person's token should still be accepted")
	}
	for _, s := range d.servers {
		if strings.Contains(s.Log.String(), token) || strings.Contains(s.Log.String(), clientSecret) {
			t.Error("the log contains the token or the client's secret")
		}
	}
}

func TestClosingAnAccountAtTheProviderEndsItOnAllServers(t *testing.T) {
	t.Parallel()
	d := trust(t, "introspect: true", "recheckSeconds: 5")
	browser := harness.NewBrowser(t)
	cookie := d.logIn(t, browser)
	alice, bob := d.sessions(t, browser.PersonToken(t, d.provider.Issuer, "app", "", d.back, "")), d.bob(t)
	streams := []<-chan struct{}{eventsEnd(t, d.servers[0], cookie), eventsEnd(t, d.servers[1], cookie)}

	began := time.Now()
	d.provider.CloseAccount(t, "alice")
	for _, s := range d.servers {
		if !testkit.Within(harness.Timeout, func() bool { return sessionStatus(t, s, cookie) == http.StatusUnauthorized }) {
			t.Fatalf("%s still accepts the login after %v", s.URL, harness.Timeout)
		}
	}
	ends(t, streams, began)
	if took := time.Since(began); took > 5*time.Second+propagationLimit {
		t.Errorf("the login and its streams ended after %v, with recheckSeconds: 5", took)
	}
	d.refuses(t, alice, began)
	if !allReturn(t, bob, http.StatusOK) {
		t.Error("another person's token should still be accepted")
	}
}

// bob opens a session on each server with another person's token.
func (d *trustingServers) bob(t *testing.T) []*harness.MCPClient {
	t.Helper()
	return d.sessions(t, harness.NewBrowser(t).PersonToken(t, d.provider.Issuer, "app", "", d.back, "bob"))
}

// refuses waits until each server rejects its session. The rejection must come within a minute of began.
func (d *trustingServers) refuses(t *testing.T, sessions []*harness.MCPClient, began time.Time) {
	t.Helper()
	for i, s := range d.servers {
		if !testkit.Within(harness.Timeout, func() bool { return allReturn(t, sessions[i:i+1], http.StatusUnauthorized) }) {
			t.Fatalf("%s still accepts the token after %v", s.URL, harness.Timeout)
		}
		took := time.Since(began)
		t.Logf("%s refuses the token after %v", s.URL, took)
		if took > time.Minute+propagationLimit {
			t.Errorf("%s accepted the token for %v; the documented limit is a minute", s.URL, took)
		}
	}
}

// ends waits until each stream has ended.
func ends(t *testing.T, streams []<-chan struct{}, began time.Time) {
	t.Helper()
	for i, ended := range streams {
		select {
		case <-ended:
			t.Logf("stream %d has ended after %v", i, time.Since(began))
		case <-time.After(harness.Timeout):
			t.Errorf("stream %d is still open after %v", i, time.Since(began))
		}
	}
}

// The provider reports a logout to one server. The person's logins, /mcp sessions and streams then end on all servers.
func TestALogoutAtTheProviderEndsAUsersSessionsOnAllServers(t *testing.T) {
	t.Parallel()
	d := trust(t)
	issuer, browser := d.provider.Issuer, harness.NewBrowser(t)
	cookie := d.logIn(t, browser)
	// The provider includes its session ID only in tokens for the client that it notifies about logouts.
	ours := d.sessions(t, browser.PersonToken(t, issuer, "confidential", clientSecret, d.back, ""))
	others := d.sessions(t, browser.PersonToken(t, issuer, "app", "", d.back, ""))
	alice := append(ours, others...)
	// Sessions that must continue: another login of the same person, and another person.
	continuing := append(d.sessions(t, harness.NewBrowser(t).PersonToken(t, issuer, "confidential", clientSecret, d.back, "")), d.bob(t)...)
	var streams []<-chan struct{}
	for _, c := range alice {
		streams = append(streams, streamEnds(t, c))
	}
	var standing []<-chan struct{}
	for _, c := range continuing {
		standing = append(standing, streamEnds(t, c))
	}
	for _, s := range d.servers {
		streams = append(streams, eventsEnd(t, s, cookie))
		if status := sessionStatus(t, s, cookie); status != http.StatusOK {
			t.Fatalf("%s returns %d for the cookie", s.URL, status)
		}
	}

	began := time.Now()
	browser.LogOutAt(t, issuer)
	waitFor(t, "the login ends on both servers", func() bool {
		return sessionStatus(t, d.servers[0], cookie) == http.StatusUnauthorized && sessionStatus(t, d.servers[1], cookie) == http.StatusUnauthorized
	})
	waitFor(t, "the sessions end on both servers", func() bool {
		return allReturn(t, alice, http.StatusUnauthorized, http.StatusNotFound)
	})
	ends(t, streams, began)
	if took := time.Since(began); took > propagationLimit {
		t.Errorf("everything ended %v after the logout, the limit is %v", took, propagationLimit)
	} else {
		t.Logf("everything ended %v after the logout", took)
	}
	d.replay(t)
	if !allReturn(t, continuing, http.StatusOK) {
		t.Error("the token of another login or person should still be accepted")
	}
	for i, ended := range standing {
		select {
		case <-ended:
			t.Errorf("stream %d of another login or person has ended", i)
		default:
		}
	}
	again := d.logIn(t, browser)
	for _, s := range d.servers {
		if status := sessionStatus(t, s, again); status != http.StatusOK {
			t.Errorf("%s returns %d for a login after the logout", s.URL, status)
		}
	}
}

// replay sends the provider's logout token again, both unchanged and modified.
func (d *trustingServers) replay(t *testing.T) {
	t.Helper()
	sent := d.provider.LogoutTokens(t)
	if len(sent) != 1 {
		t.Fatalf("the provider sent %d logout tokens, want one", len(sent))
	}
	signed := strings.LastIndexByte(sent[0], '.') + 1
	for _, s := range d.servers {
		for name, token := range map[string]string{
			"again":                  sent[0],
			"with another signature": sent[0][:signed] + strings.Repeat("A", len(sent[0])-signed),
			"without a signature":    sent[0][:signed],
			"with another header":    "e30" + sent[0][strings.IndexByte(sent[0], '.'):],
			"with trailing data":     sent[0] + ".e30",
		} {
			a, err := http.PostForm(s.URL+"/v1/auth/backchannel-logout", url.Values{"logout_token": {token}})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(a.Body)
			_ = a.Body.Close()
			if a.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "bad_request") || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("for the logout token %[2]s, %[1]s returned %[3]d %[4]s", s.URL, name, a.StatusCode, body)
			}
		}
		if strings.Contains(s.Log.String(), sent[0]) {
			t.Error("the log contains the logout token")
		}
	}
}

// logIn logs a browser in to the first server. It returns a header with the session cookie.
func (d *trustingServers) logIn(t *testing.T, browser *harness.Browser) string {
	t.Helper()
	browser.Stop = ""
	browser.Visit(t, d.servers[0].URL+"/v1/auth/authorize?returnTo=/v1/auth/session")
	value := browser.Cookie(t, "service_session", d.servers[0].URL)
	if value == "" {
		t.Fatalf("the login ended at %s", browser.At)
	}
	return "Cookie: service_session=" + value
}

// sessionStatus returns the status of a request that uses the login.
func sessionStatus(t *testing.T, s *harness.Server, cookie string) int {
	t.Helper()
	return s.Do(t, http.MethodGet, "/v1/auth/session", nil, cookie).Status
}

// eventsEnd opens the event stream. It returns a channel that is closed when the stream ends.
func eventsEnd(t *testing.T, s *harness.Server, cookie string) <-chan struct{} {
	t.Helper()
	events, ended := s.Listen(t, cookie), make(chan struct{})
	go func() {
		defer close(ended)
		for range events.Events { // until the stream ends
		}
	}()
	return ended
}
