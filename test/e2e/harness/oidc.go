package harness

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// audience is the audience of the tokens in these tests.
const audience = "https://ropewalk.test/mcp"

// MachineToken returns an access token of the provider's client "machine". This client is an admin of org_1.
func MachineToken(t *testing.T, issuer string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"tools"}, "resource": {audience}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("machine", "machine-secret-0123456789")
	a := Exchange(t, req)
	token, _ := a.Object(t)["access_token"].(string)
	if token == "" {
		t.Fatalf("the provider returned %d %s", a.Status, a.Body)
	}
	return token
}

// PersonToken returns an access token that the provider issues to a client when a person logs in with the browser. The
// person is alice, unless hint names another person. secret is the client's secret, or "" for a public client. callback
// is the client's redirect URI.
func (b *Browser) PersonToken(t *testing.T, issuer, client, secret, callback, hint string) string {
	t.Helper()
	verifier := oauth2.GenerateVerifier()
	ask := url.Values{
		"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid tools"}, "resource": {audience},
		"state": {"a-state"}, "code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"}, "login_hint": {hint},
	}
	if hint == "" {
		ask.Del("login_hint")
	}
	b.Stop = callback
	b.Visit(t, issuer+"/auth?"+ask.Encode())
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {b.At.Query().Get("code")}, "redirect_uri": {callback}, "resource": {audience},
		"code_verifier": {verifier}, "client_id": {client},
	}
	a := postForm(t, issuer+"/token", form, client, secret)
	token, _ := a.Object(t)["access_token"].(string)
	if token == "" {
		t.Fatalf("the browser ended at %s, and the provider returned %d %s", b.At, a.Status, a.Body)
	}
	return token
}

// RevokeToken revokes a client's access token at the provider (RFC 7009).
func RevokeToken(t *testing.T, issuer, client, secret, token string) {
	t.Helper()
	if a := postForm(t, issuer+"/token/revocation", url.Values{"token": {token}, "client_id": {client}}, client, secret); a.Status != http.StatusOK {
		t.Fatalf("the provider returned %d %s", a.Status, a.Body)
	}
}

// postForm sends a client's form. It authenticates with the client secret, unless that is "".
func postForm(t *testing.T, address string, form url.Values, client, secret string) Response {
	t.Helper()
	if secret != "" {
		form.Del("client_id")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" {
		req.SetBasicAuth(client, secret)
	}
	return Exchange(t, req)
}

// LogOutAt ends the browser's session at the provider. The provider then notifies its clients.
func (b *Browser) LogOutAt(t *testing.T, issuer string) {
	t.Helper()
	page := b.exchange(t, http.MethodGet, issuer+"/session/end", nil)
	_, rest, found := strings.Cut(page, `name="xsrf" value="`)
	secret, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		t.Fatalf("the provider's page has no logout form: %s", page)
	}
	b.exchange(t, http.MethodPost, issuer+"/session/end/confirm", url.Values{"xsrf": {secret}, "logout": {"yes"}})
}

// exchange sends a request with the browser and returns the last page.
func (b *Browser) exchange(t *testing.T, method, address string, form url.Values) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	b.Stop = ""
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, address, resp.StatusCode, page, err)
	}
	return string(page)
}

// OIDCAuth returns the auth section of a configuration for the provider. It appends the settings in more.
func OIDCAuth(issuer string, more ...string) string {
	lines := append([]string{
		"adapter: oidc", "issuer: " + issuer, "audience: " + audience, "roleClaim: roles", "roles: {staff-admin: admin}",
	}, more...)
	return "auth:\n  " + strings.Join(lines, "\n  ") + "\n"
}
