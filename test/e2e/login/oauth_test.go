package login

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// challenge returns the WWW-Authenticate header that every 401 from /mcp has (docs/api.md 10.4).
func challenge(base string) string {
	return `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + base + `/.well-known/oauth-protected-resource", scope="openid profile email"`
}

func TestTheOfficialClientLogsInThroughAnIdentityProvider(t *testing.T) {
	t.Parallel()
	provider := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/v1/auth/callback")
	s := harness.Serve(t, harness.Config("auth: {adapter: oidc, issuer: \""+provider.Issuer+"\", organizationId: org_1}\n"))

	if a := s.Do(t, "POST", "/mcp", `{}`); a.Status != 401 || a.Header.Get("WWW-Authenticate") != challenge(s.URL) {
		t.Errorf("without a token: %d %v", a.Status, a.Header)
	}
	for path, resource := range map[string]string{"": s.URL, "/mcp": s.URL + "/mcp"} {
		want := `{"resource":"` + resource + `","authorization_servers":["` + provider.Issuer + `"],"scopes_supported":["openid","profile","email"],"bearer_methods_supported":["header"]}`
		if a := s.Do(t, "GET", "/.well-known/oauth-protected-resource"+path, nil); a.Status != 200 || a.Body != want {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
		var metadata struct {
			Issuer       string `json:"issuer"`
			Registration string `json:"registration_endpoint"`
		}
		if a := s.Do(t, "GET", "/.well-known/oauth-authorization-server"+path, nil); json.Unmarshal([]byte(a.Body), &metadata) != nil ||
			metadata.Issuer != provider.Issuer || !strings.HasPrefix(metadata.Registration, provider.Issuer) {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}

	seen := harness.RunScript[struct {
		Asked          []string
		Registered     bool
		PKCE, Resource string
		Token          string
		Tools          []string
		Status         bool
	}](t, "oauth.mjs", s.URL)
	if len(seen.Asked) == 0 || seen.Asked[0] != "/mcp 401" || !slices.Contains(seen.Asked, "/.well-known/oauth-protected-resource 200") {
		t.Errorf("the client asked %q", seen.Asked)
	}
	if !seen.Registered || seen.PKCE != "S256" || strings.TrimSuffix(seen.Resource, "/") != s.URL {
		t.Errorf("registered: %v; PKCE: %s; resource: %s", seen.Registered, seen.PKCE, seen.Resource)
	}
	if !slices.Contains(seen.Tools, "system__status") || seen.Status {
		t.Errorf("the client lists %v; system__status failed: %v", seen.Tools, seen.Status)
	}

	// Servers that trust another organization, provider or audience reject the same token.
	other := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/v1/auth/callback")
	for name, elsewhere := range map[string]*harness.Server{
		"another organization": harness.Serve(t, harness.Config("auth: {adapter: oidc, issuer: \""+provider.Issuer+"\", organizationId: org_2, audience: any}\n")),
		"another issuer":       harness.Serve(t, harness.Config("auth: {adapter: oidc, issuer: \""+other.Issuer+"\", audience: any}\n")),
		"another audience":     harness.Serve(t, harness.Config("auth: {adapter: oidc, issuer: \""+provider.Issuer+"\"}\n")),
	} {
		if a := elsewhere.Do(t, "POST", "/mcp", `{}`, "Authorization: Bearer "+seen.Token); a.Status != 401 || a.Header.Get("WWW-Authenticate") != challenge(elsewhere.URL) {
			t.Errorf("%s: %d %v", name, a.Status, a.Header)
		}
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	keys, err := authtest.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	provider, err := authtest.NewProvider(keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	s := harness.Serve(t, harness.Config("auth: {adapter: oidc, issuer: \""+provider.Issuer()+"\", organizationId: "+provider.Organization+", audience: \""+provider.Audience+"\"}\n"))
	valid := provider.Token()
	mine := s.Do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+valid).Object(t)["workspace"].(map[string]any)["id"].(string)
	open := func(token string) harness.Response {
		return s.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`,
			"Authorization: Bearer "+token, "X-Workspace-Id: "+mine, "Content-Type: application/json", "Accept: application/json, text/event-stream")
	}
	// White space around the value of a header field is not part of the value, and a value cannot contain line breaks
	// (RFC 9110, section 5.5). The test also skips tokens that become valid within a minute, because this loop could be
	// slower than that. The kit itself tests them.
	forgeries := slices.DeleteFunc(provider.Forgeries(), func(f authtest.Forgery) bool {
		return strings.TrimSpace(f.Token) != f.Token || strings.ContainsAny(f.Token, "\r\n\x00") || strings.HasSuffix(f.Name, " 60 s from now")
	})
	for _, f := range forgeries {
		if a := open(f.Token); a.Status != 401 || a.Header.Get("WWW-Authenticate") != challenge(s.URL) || !strings.Contains(a.Body, "ropewalk key create") {
			t.Errorf("%s: %s: %d %v %s", f.Clause, f.Name, a.Status, a.Header, a.Body)
		}
	}
	if a := open(valid); a.Status != 200 || a.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("a valid token: %d %s", a.Status, a.Body)
	}
	t.Logf("%d kinds of forged tokens, 0 accepted", len(forgeries))
}
