package plugins

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const staticToken = "the-token-of-alice-1"

// withStatic returns a configuration with an OpenID provider and a token file.
func withStatic(oidc, tokens string) string {
	return strings.Replace(oidc, "auth:\n  ", "auth:\n- ", 1) + "- {name: file, adapter: static, audience: any, file: " + tokens + "}\n"
}

func TestAReloadAddsAndRemovesAuthAdapters(t *testing.T) {
	port := harness.FreePort(t)
	provider := testenv.StartOpenIDProvider(t, "http://127.0.0.1:"+port+"/v1/auth/callback")
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n  - {token: "+staticToken+", subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n")
	one := harness.OIDCAuth(provider.Issuer, "clientId: app", "redirectUri: http://127.0.0.1:"+port+"/v1/auth/callback")
	s := harness.Serve(t, harness.Flags("--sample", "--port", port), harness.Config(one))
	machine := "Bearer " + harness.MachineToken(t, provider.Issuer)
	waitForStatusAs(t, s, machine, "sample", "running")
	l := harness.StartLoad(t, 100, s.OpenSession(t, "Authorization", machine), s.OpenSession(t, "Authorization", machine))
	l.WaitForCalls(t, 50)
	before := processID(t, s, "plugin serve auth oidc")

	s.MustReload(t, withStatic(one, tokens), "auth")
	file := s.OpenSession(t, "Authorization", "Bearer "+staticToken)
	if _, err := file.Echo(t.Context(), "of-the-file"); err != nil {
		t.Errorf("a token of the second adapter: %v", err)
	}
	l.WaitForCalls(t, 50)
	if after := processID(t, s, "plugin serve auth oidc"); after != before {
		t.Errorf("the adapter that did not change was restarted: process %d, then %d", before, after)
	}
	if status, _, _, _ := (&harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", "Bearer a-token-of-nobody-at-all"}}).Post(t.Context(), harness.Initialize); status != http.StatusUnauthorized {
		t.Errorf("an unknown token gets %d", status)
	}
	output, status := harness.Command(t, nil, "plugin", "list", "--home", s.Home)
	if status != 0 || !strings.Contains(output, "oidc") || !strings.Contains(output, "file") {
		t.Errorf("plugin list: %d %s", status, output)
	}
	if login := s.Do(t, "GET", "/v1/auth/authorize", nil); login.Status != http.StatusFound { // the token file does not support logins
		t.Errorf("a login begins with %d %s", login.Status, login.Body)
	}

	harness.WriteFile(t, tokens, "tokens:\n  - {token: another-token-of-alice, subject: alice, expires: 2099-01-01T00:00:00Z}\n")
	if !testkit.Within(harness.Timeout, func() bool { status, _ := file.Echo(t.Context(), "revoked"); return status == http.StatusUnauthorized }) {
		t.Error("a token removed from the file should be rejected")
	}
	s.MustReload(t, one, "auth")
	if status, _ := (&harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", "Bearer another-token-of-alice"}}).Echo(t.Context(), "gone"); status != http.StatusUnauthorized {
		t.Errorf("a token of the removed adapter gets %d", status)
	}
	l.WaitForCalls(t, 50)
	l.Stop()
	for _, o := range l.Failures {
		t.Errorf("a call in a session of the first adapter failed: %v", o.Err)
	}
	if output, err := s.Reload(t, strings.Replace(withStatic(one, tokens), "name: file", "name: oidc", 1)); err == nil || !strings.Contains(output, "auth[1].name") {
		t.Errorf("two adapters with the same name: %v, %s", err, output)
	}
}
