package harness

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// audience is the audience of the tokens of machineToken.
const audience = "https://ropewalk.test/mcp"

// MachineToken returns an access token of the client "machine" of the provider, an admin of org_1.
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
		t.Fatalf("the provider answered %d %s", a.Status, a.Body)
	}
	return token
}

// OIDCAuth is the auth section for the provider, with more settings.
func OIDCAuth(issuer string, more ...string) string {
	lines := append([]string{
		"adapter: oidc", "issuer: " + issuer, "audience: " + audience, "roleClaim: roles", "roles: {staff-admin: admin}",
	}, more...)
	return "auth:\n  " + strings.Join(lines, "\n  ") + "\n"
}
