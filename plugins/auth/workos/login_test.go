package workos

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// logIn logs in as a browser and a server would.
func logIn(t *testing.T, adapter *Adapter) (auth.Identity, error) {
	t.Helper()
	digest := sha256.Sum256([]byte("a-verifier"))
	address, err := adapter.AuthorizeURL(t.Context(), auth.AuthorizeRequest{State: "s", Nonce: "n", CodeChallenge: base64.RawURLEncoding.EncodeToString(digest[:])})
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return adapter.Exchange(t.Context(), auth.ExchangeRequest{Code: back.Query().Get("code"), Nonce: "n", CodeVerifier: "a-verifier"})
}

// among returns an adapter with a fake provider and this WorkOS API.
func among(t *testing.T, workOS http.Handler, changes ...map[string]any) *Adapter {
	t.Helper()
	p, err := authtest.NewProvider(newKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	server := httptest.NewServer(workOS)
	t.Cleanup(server.Close)
	adapter := New()
	if err := adapter.Configure(t.Context(), settings(p, server.URL, changes...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = adapter.Close() })
	return adapter
}

func TestMembershipDecidesLoginsAndTheirChecks(t *testing.T) {
	workOS := newAPI()
	workOS.list()
	adapter := among(t, workOS)
	if id, err := logIn(t, adapter); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Fatalf("a login without a membership: %+v, %v", id, err)
	}
	workOS.list(active("user_alice", "admin"))
	id, err := logIn(t, adapter)
	if err != nil || id.Subject != "user_alice" || id.OrgRole != "admin" || id.Renewal == "" {
		t.Fatalf("a login: %+v, %v", id, err)
	}
	ask := func() (auth.Identity, error) {
		clear(adapter.members.known) // as if five minutes had passed
		return adapter.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: "user_alice"})
	}
	workOS.list(active("user_alice", "member"))
	if again, err := ask(); err != nil || again.OrgRole != "member" {
		t.Errorf("a former admin's login: %+v, %v", again, err)
	}
	workOS.breakDown(true)
	if again, err := ask(); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("the API is down: %+v, %v", again, err)
	}
	workOS.breakDown(false)
	workOS.list()
	if again, err := ask(); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("a former member's login: %+v, %v", again, err)
	}
}

func TestWithoutAnAPIKeyALoginIsCheckedWithoutMemberships(t *testing.T) {
	adapter := among(t, newAPI(), map[string]any{"apiKey": ""})
	id, err := logIn(t, adapter)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adapter.CheckSession(t.Context(), auth.SessionCheck{Renewal: id.Renewal, Subject: id.Subject}); err != nil {
		t.Error(err)
	}
}

func TestAnInvalidMembershipListDoesNotEndALogin(t *testing.T) {
	for _, body := range []string{`null`, `{}`, `{"data": null}`, `{"data": {}}`, `{"data": [7]}`, `[]`, `"text"`, `<html>`, ``} {
		m := newMembers("https://api.workos.com/", apiKey, organization, New().log)
		m.client.Transport = answers(body)
		if role, err := m.role(t.Context(), "user_alice"); !errors.Is(err, plugins.ErrUnavailable) {
			t.Errorf("%s: got %q, %v, want unavailable", body, role, err)
		}
		m.close()
	}
	m := newMembers("https://api.workos.com/", apiKey, organization, New().log)
	defer m.close()
	whole, err := json.Marshal(map[string]any{"data": []any{active("user_alice", "admin")}})
	if err != nil {
		t.Fatal(err)
	}
	m.client.Transport = answers(whole)
	if role, err := m.role(t.Context(), "user_alice"); err != nil || role != "admin" {
		t.Errorf("a list: got %q, %v", role, err)
	}
}

// answers is a transport that responds to every request for memberships with this body.
type answers string

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	if req.URL.Path != "/user_management/organization_memberships" {
		rec.WriteHeader(http.StatusNotFound)
	}
	_, _ = rec.WriteString(string(a))
	return rec.Result(), nil
}

func TestAnUnsetClientIsNotAnAudience(t *testing.T) {
	adapter := New()
	if err := adapter.Close(); err != nil {
		t.Errorf("close without settings: %v", err)
	}
	if err := adapter.Configure(t.Context(), plugins.Config{JSON: json.RawMessage(`{"idpDomain":"example","audiences":["x"]}`)}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = adapter.Close() }()
	for range 2 {
		d, err := adapter.Describe(t.Context())
		if err != nil || !slices.Equal(d.Audiences, []string{"x"}) {
			t.Fatalf("got %+v, %v", d, err)
		}
		d.Audiences[0] = "changed"
	}
}
