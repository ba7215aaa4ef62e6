package oidc_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

const (
	callback = "http://127.0.0.1:1/v1/auth/callback"
	resource = "https://ropewalk.example/mcp"
)

// TestARealProvider runs the adapter, over gRPC, against oidc-provider.
func TestARealProvider(t *testing.T) {
	provider := testenv.StartOpenIDProvider(t, callback)
	settings, _ := json.Marshal(map[string]any{
		"issuer": provider.Issuer, "clientId": "app", "redirectUri": callback, "organizationId": "org_1",
		"roleClaim": "roles", "roles": map[string]string{"staff-admin": "admin"},
	})
	adapter := oidc.New()
	t.Cleanup(func() { _ = adapter.Close() })
	client := auth.Client(plugintest.Configured(t, auth.Plugin(adapter), string(settings)))

	t.Run("an access token from the client credentials grant is accepted", func(t *testing.T) {
		id, err := client.Verify(t.Context(), auth.VerifyRequest{Token: machineToken(t, provider), Audiences: []string{resource}})
		if err != nil {
			t.Fatal(err)
		}
		if id.Issuer != provider.Issuer || id.Subject != "machine" || id.OrganizationID != "org_1" || id.OrgRole != "admin" ||
			len(id.Scopes) != 1 || id.Scopes[0] != "tools" || time.Until(id.ExpiresAt) < 9*time.Minute {
			t.Errorf("got %+v", id)
		}
	})
	t.Run("an access token for another resource is refused", func(t *testing.T) {
		_, err := client.Verify(t.Context(), auth.VerifyRequest{Token: machineToken(t, provider), Audiences: []string{"https://other.example"}})
		if !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("got %v, want a refusal", err)
		}
	})
	t.Run("metadata is the provider's own document", func(t *testing.T) {
		raw, err := client.Metadata(t.Context())
		if err != nil || !strings.Contains(string(raw), `"registration_endpoint"`) && !strings.Contains(string(raw), `"token_endpoint":"`+provider.Issuer) {
			t.Errorf("got %s, %v", raw, err)
		}
	})
	t.Run("a browser login with PKCE ends with the person", func(t *testing.T) { logIn(t, client.(auth.Login), provider) })
	t.Run("a token signed with a rotated key is accepted, and one signed with the old key is not", func(t *testing.T) {
		old := machineToken(t, provider)
		provider.Rotate(t)
		request := auth.VerifyRequest{Token: machineToken(t, provider), Audiences: []string{resource}}
		if _, err := client.Verify(t.Context(), request); err != nil {
			t.Fatalf("the new key: %v", err)
		}
		request.Token = old
		if _, err := client.Verify(t.Context(), request); !errors.Is(err, plugins.ErrUnauthenticated) {
			t.Errorf("the old key: got %v, want a refusal", err)
		}
	})
}

func machineToken(t *testing.T, provider *testenv.OpenIDProvider) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {"tools"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, provider.Issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("machine", "machine-secret-0123456789")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		AccessToken string `json:"access_token"`
		Error       string `json:"error_description"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.AccessToken == "" {
		t.Fatalf("no token: %d %v %s", resp.StatusCode, err, answer.Error)
	}
	return answer.AccessToken
}

func logIn(t *testing.T, login auth.Login, provider *testenv.OpenIDProvider) {
	verifier := oauth2.GenerateVerifier()
	address, err := login.AuthorizeURL(t.Context(), auth.AuthorizeRequest{
		RedirectURI: callback, State: "the-state", Nonce: "the-nonce", CodeChallenge: oauth2.S256ChallengeFromVerifier(verifier),
	})
	if err != nil {
		t.Fatal(err)
	}
	back := browse(t, address)
	if back.Query().Get("state") != "the-state" || back.Query().Get("code") == "" {
		t.Fatalf("the browser came back to %s", back)
	}
	exchange := auth.ExchangeRequest{RedirectURI: callback, Code: back.Query().Get("code"), Nonce: "the-nonce", CodeVerifier: verifier}
	id, err := login.Exchange(t.Context(), exchange)
	if err != nil {
		t.Fatal(err)
	}
	want := auth.Identity{
		Issuer: provider.Issuer, Subject: "alice", Email: "alice@example.com", DisplayName: "Alice", OrganizationID: "org_1", OrgRole: "admin",
	}
	id.ExpiresAt, id.Scopes = want.ExpiresAt, nil
	if id.Issuer != want.Issuer || id.Subject != want.Subject || id.Email != want.Email || id.DisplayName != want.DisplayName ||
		id.OrganizationID != want.OrganizationID || id.OrgRole != want.OrgRole {
		t.Errorf("got %+v, want %+v", id, want)
	}
	if _, err := login.Exchange(t.Context(), exchange); !errors.Is(err, plugins.ErrUnauthenticated) {
		t.Errorf("the same code again: got %v, want a refusal", err)
	}
}

// browse follows redirects, with cookies, until the provider redirects the browser back.
func browse(t *testing.T, address string) *url.URL {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back *url.URL
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(req.URL.String(), callback) {
			back = req.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if back == nil {
		t.Fatalf("the provider never sent the browser back: %s returned %d", resp.Request.URL, resp.StatusCode)
	}
	return back
}
