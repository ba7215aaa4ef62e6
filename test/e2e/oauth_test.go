package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/plugins/auth/authtest"
)

// challenge is the header of every 401 of /mcp (docs/api.md 10.4).
func challenge(base string) string {
	return `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + base + `/.well-known/oauth-protected-resource", scope="openid profile email"`
}

func TestTheOfficialClientLogsInThroughAnIdentityProvider(t *testing.T) {
	t.Parallel()
	provider := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/v1/auth/callback")
	s := serve(t, config("auth: {adapter: oidc, issuer: \""+provider.Issuer+"\", organizationId: org_1}\n"))

	if a := s.do(t, "POST", "/mcp", `{}`); a.status != 401 || a.header.Get("WWW-Authenticate") != challenge(s.url) {
		t.Errorf("without a token: %d %v", a.status, a.header)
	}
	for path, resource := range map[string]string{"": s.url, "/mcp": s.url + "/mcp"} {
		want := `{"resource":"` + resource + `","authorization_servers":["` + provider.Issuer + `"],"scopes_supported":["openid","profile","email"],"bearer_methods_supported":["header"]}`
		if a := s.do(t, "GET", "/.well-known/oauth-protected-resource"+path, nil); a.status != 200 || a.body != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		var metadata struct {
			Issuer       string `json:"issuer"`
			Registration string `json:"registration_endpoint"`
		}
		if a := s.do(t, "GET", "/.well-known/oauth-authorization-server"+path, nil); json.Unmarshal([]byte(a.body), &metadata) != nil ||
			metadata.Issuer != provider.Issuer || !strings.HasPrefix(metadata.Registration, provider.Issuer) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}

	seen := runScript[struct {
		Asked          []string
		Registered     bool
		PKCE, Resource string
		Token          string
		Tools          []string
		Status         bool
	}](t, "oauth.mjs", s.url)
	if len(seen.Asked) == 0 || seen.Asked[0] != "/mcp 401" || !slices.Contains(seen.Asked, "/.well-known/oauth-protected-resource 200") {
		t.Errorf("the client asked %q", seen.Asked)
	}
	if !seen.Registered || seen.PKCE != "S256" || strings.TrimSuffix(seen.Resource, "/") != s.url {
		t.Errorf("registered %v, PKCE %s, for %s", seen.Registered, seen.PKCE, seen.Resource)
	}
	if !slices.Contains(seen.Tools, "system__status") || seen.Status {
		t.Errorf("the client lists %v; system__status failed: %v", seen.Tools, seen.Status)
	}

	// The same token is nobody's where another organization, or another provider, is trusted.
	other := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/v1/auth/callback")
	for name, elsewhere := range map[string]*server{
		"another organization": serve(t, config("auth: {adapter: oidc, issuer: \""+provider.Issuer+"\", organizationId: org_2, audience: any}\n")),
		"another issuer":       serve(t, config("auth: {adapter: oidc, issuer: \""+other.Issuer+"\", audience: any}\n")),
		"another audience":     serve(t, config("auth: {adapter: oidc, issuer: \""+provider.Issuer+"\"}\n")),
	} {
		if a := elsewhere.do(t, "POST", "/mcp", `{}`, "Authorization: Bearer "+seen.Token); a.status != 401 || a.header.Get("WWW-Authenticate") != challenge(elsewhere.url) {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
	}
}

func TestNoForgedTokenOpensMCP(t *testing.T) {
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
	s := serve(t, config("auth: {adapter: oidc, issuer: \""+provider.Issuer()+"\", organizationId: "+authtest.Organization+", audience: \""+authtest.Audience+"\"}\n"))
	good := provider.Token()
	mine := s.do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+good).object(t)["workspace"].(map[string]any)["id"].(string)
	open := func(token string) answer {
		return s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`,
			"Authorization: Bearer "+token, "X-Workspace-Id: "+mine, "Content-Type: application/json", "Accept: application/json, text/event-stream")
	}
	forgeries := provider.Forgeries()
	for _, f := range forgeries {
		if a := open(f.Token); a.status != 401 || a.header.Get("WWW-Authenticate") != challenge(s.url) || a.body != "" {
			t.Errorf("%s: %s: %d %v %s", f.Clause, f.Name, a.status, a.header, a.body)
		}
	}
	if a := open(good); a.status != 200 || a.header.Get("Mcp-Session-Id") == "" {
		t.Errorf("a good token: %d %s", a.status, a.body)
	}
	t.Logf("%d kinds of forged tokens, 0 accepted", len(forgeries))
}
