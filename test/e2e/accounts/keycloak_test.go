package accounts

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// keycloakRealm has one user and refresh tokens that can be used once, and lets anybody register clients. The client
// "app" introspects tokens.
const keycloakRealm = `{"realm": "people", "enabled": true, "revokeRefreshToken": true, "refreshTokenMaxReuse": 0, "accessTokenLifespan": 10,
"users": [{"username": "alice", "enabled": true, "email": "alice@example.com", "emailVerified": true, "firstName": "Alice", "lastName": "A",
  "credentials": [{"type": "password", "value": "alice-password"}]}],
"clients": [{"clientId": "app", "secret": "app-secret", "standardFlowEnabled": false, "serviceAccountsEnabled": true}],
"components": {"org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy": [
  {"name": "Max Clients Limit", "providerId": "max-clients", "subType": "anonymous", "config": {"max-clients": ["200"]}}]}}`

// startKeycloak starts Keycloak and returns the realm's issuer.
func startKeycloak(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack",
		"-Dartifact=org.keycloak:keycloak-quarkus-dist:26.4.7:zip", "-DoutputDirectory="+dir)
	unpack.Dir = dir
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpacking Keycloak: %v\n%s", err, out)
	}
	home := filepath.Join(dir, "keycloak-26.4.7")
	harness.WriteFile(t, filepath.Join(home, "data", "import", "people-realm.json"), keycloakRealm)
	port := harness.FreePort(t)
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(home, "bin", "kc.sh"), "start-dev", "--db=dev-mem", "--http-host=127.0.0.1", "--http-port="+port, "--import-realm")
	log := &testkit.Log{}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
	})
	issuer := "http://127.0.0.1:" + port + "/realms/people"
	if !testkit.Within(3*harness.Timeout, func() bool {
		resp, err := http.Get(issuer)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	}) {
		t.Fatalf("Keycloak did not start:\n%s", log.String())
	}
	return issuer
}

// introspect asks Keycloak who a token belongs to. It returns "" if the token is not, or no longer, valid.
func introspect(t *testing.T, issuer, token string) string {
	resp, err := http.PostForm(issuer+"/protocol/openid-connect/token/introspect", url.Values{"token": {token}, "client_id": {"app"}, "client_secret": {"app-secret"}})
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	var output struct {
		Active   bool
		Username string
	}
	if err := json.NewDecoder(resp.Body).Decode(&output); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("introspection: %d %v", resp.StatusCode, err)
	}
	if !output.Active {
		return ""
	}
	return output.Username
}

var keycloakForm = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)

// Keycloak refuses the app's scopes. It registers this server as a client with a secret.
func TestAnAccountIsLinkedRenewedAndRevokedWithKeycloak(t *testing.T) {
	if os.Getenv("ROPEWALK_TEST_KEYCLOAK") == "" {
		t.Skip("this test downloads 160 MB; run it with make test-keycloak")
	}
	testenv.Program(t, "mvn")
	issuer := startKeycloak(t)
	a := harness.StartAccountAppFor(t, issuer, func(bearer string) string { return introspect(t, issuer, bearer) })
	s := serve(t, a)
	b := harness.NewBrowser(t)
	_, page := b.Read(t, s.Object(t, "POST", "/v1/accounts", map[string]any{"app": "far"})["url"].(string))
	_, page = b.Submit(t, s.URL+harness.FormAction(page), nil)
	for !strings.Contains(page, "The account is linked") {
		form := keycloakForm.FindStringSubmatch(page)
		if form == nil {
			t.Fatalf("at %s: %s", b.At, page)
		}
		action, err := b.At.Parse(html.UnescapeString(form[1]))
		if err != nil {
			t.Fatal(err)
		}
		fields := url.Values{"username": {"alice"}, "password": {"alice-password"}}
		if _, code, asksForConsent := strings.Cut(page, `name="code" value="`); asksForConsent {
			code, _, _ = strings.Cut(code, `"`)
			fields = url.Values{"accept": {"Yes"}, "code": {code}}
		}
		_, page = b.Submit(t, action.String(), fields)
	}
	call := map[string]any{"server": "far", "tool": "whoami"}
	if !testkit.Within(harness.Timeout, func() bool {
		if got := s.Do(t, "POST", "/v1/tools/call", call); got.Status == http.StatusOK && !strings.Contains(got.Body, "alice") {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return len(a.Tokens()) >= 4
	}) {
		t.Fatalf("the app saw %d tokens", len(a.Tokens()))
	}
	if list := accountsOf(t, s); len(list) != 1 || list[0]["state"] != "active" || list[0]["issuer"] != issuer {
		t.Fatalf("the accounts: %v", list)
	}
	unlink(t, s)
	if !testkit.Within(harness.Timeout, func() bool {
		for _, token := range a.Tokens() {
			if introspect(t, issuer, token) != "" {
				return false
			}
		}
		return true
	}) {
		t.Error("Keycloak should reject a token of the unlinked account")
	}
}
