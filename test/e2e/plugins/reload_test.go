package plugins

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// pluginBinary builds a built-in adapter as a plugin binary and returns its path and SHA-256.
func pluginBinary(t *testing.T, name string) (path, sum string) {
	t.Helper()
	path = testenv.Executable(t, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, fmt.Sprintf("%x", sha256.Sum256(raw))
}

func TestReloadingPluginsLosesNoCallsOrSessions(t *testing.T) {
	provider, redis := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback"), testenv.StartRedis(t)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config(harness.OIDCAuth(provider.Issuer)))
	bearer := "Bearer " + harness.MachineToken(t, provider.Issuer)
	waitForStatusAs(t, s, bearer, "sample", "running")
	var clients []*harness.MCPClient
	for range 8 {
		clients = append(clients, s.OpenSession(t, "Authorization", bearer))
	}
	l := harness.StartLoad(t, 200, clients...)
	l.WaitForCalls(t, 100)

	store := "sessionStore: {adapter: redis, url: \"redis://" + redis.Addr + "/0\"}\n"
	s.MustReload(t, harness.OIDCAuth(provider.Issuer)+store, "sessionStore")
	l.WaitForCalls(t, 200)
	s.MustReload(t, harness.OIDCAuth(provider.Issuer, "organizationId: org_1")+store, "auth")
	l.WaitForCalls(t, 200)
	path, sum := pluginBinary(t, "auth-oidc")
	s.MustReload(t, harness.OIDCAuth(provider.Issuer, "organizationId: org_1", "path: "+path, "sha256: "+sum)+store, "auth")
	l.WaitForCalls(t, 200)
	s.MustReload(t, harness.OIDCAuth(provider.Issuer)+"sessionStore: memory\n", "auth", "sessionStore")
	s.MustReload(t, harness.OIDCAuth(provider.Issuer)+store, "sessionStore")
	l.WaitForCalls(t, 200)

	if output, err := s.Reload(t, harness.OIDCAuth(provider.Issuer, "organisationId: org_1")+store); err == nil || !strings.Contains(output, "organizationId") {
		t.Errorf("an unknown setting: %v, %s", err, output)
	}
	if output, err := s.Reload(t, harness.OIDCAuth(provider.Issuer, "path: "+path, "sha256: "+strings.Repeat("0", 64))); err == nil || !strings.Contains(output, path) {
		t.Errorf("a binary with another checksum: %v, %s", err, output)
	}
	l.WaitForCalls(t, 200)
	l.Stop()
	for _, o := range l.Failures {
		t.Errorf("a call failed: %v", o.Err)
	}
	keys := redis.Do("KEYS", "ropewalk:session:*")
	if n := strings.Count(keys, "ropewalk:session:") - strings.Count(keys, "ropewalk:session:server:"); n != len(clients) {
		t.Errorf("the live sessions were not written to the new store, which has %q", keys)
	}
	for _, c := range clients {
		if _, err := c.Echo(t.Context(), "still-here"); err != nil {
			t.Errorf("a session was dropped: %v", err)
		}
	}
	t.Logf("%d calls, none may fail", l.Calls)
}

func TestReloadingTheProviderChangesWhichTokensAreAccepted(t *testing.T) {
	t.Parallel()
	provider := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback")
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n  - {token: the-token-of-alice-1, subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n")
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\n"))
	before, after := "Bearer the-token-of-alice-1", "Bearer "+harness.MachineToken(t, provider.Issuer)
	waitForStatusAs(t, s, before, "sample", "running")
	if status, _, _, _ := (&harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", after}}).Post(t.Context(), harness.Initialize); status != http.StatusUnauthorized {
		t.Errorf("before the reload, a token of the new provider gets %d", status)
	}
	l := harness.StartLoad(t, 200, s.OpenSession(t, "Authorization", before), s.OpenSession(t, "Authorization", before))
	l.WaitForCalls(t, 100)
	asked := time.Now() // from here on, the provider may change at any time
	s.MustReload(t, harness.OIDCAuth(provider.Issuer), "auth")
	newcomer := s.OpenSession(t, "Authorization", after)
	if _, err := newcomer.Echo(t.Context(), "newcomer"); err != nil {
		t.Errorf("after the reload, a token of the new provider gets %v", err)
	}
	l.WaitForCalls(t, 100)
	l.Stop()
	if l.Statuses[http.StatusOK] == 0 || l.Statuses[http.StatusUnauthorized] == 0 || l.Statuses[http.StatusOK]+l.Statuses[http.StatusUnauthorized] != l.Calls {
		t.Errorf("%d calls with a token of the old provider: statuses %v", l.Calls, l.Statuses)
	}
	for _, o := range l.Failures {
		if o.Ended.Before(asked) {
			t.Errorf("a call was refused %v before the reload: %v", asked.Sub(o.Ended), o.Err)
		}
	}
	late := s.Do(t, "POST", "/mcp", harness.Initialize, "Authorization: "+before, "X-Workspace-Id: "+harness.Workspace, "Accept: application/json, text/event-stream")
	if late.Status != http.StatusUnauthorized || !strings.Contains(late.Header.Get("WWW-Authenticate"), `error="unauthorized"`) {
		t.Errorf("after the reload, the old token gets %d %v", late.Status, late.Header)
	}
}

// waitForStatusAs waits until the caller with this bearer token sees an app with the given status.
func waitForStatusAs(t *testing.T, s *harness.Server, bearer, name, status string) {
	t.Helper()
	var a harness.Response
	if !testkit.Within(harness.Timeout, func() bool {
		a = s.Do(t, "GET", "/v1/apps", nil, "Authorization: "+bearer, "X-Workspace-Id: "+harness.Workspace)
		return a.Status == http.StatusOK && strings.Contains(a.Body, fmt.Sprintf("%q", status)) && strings.Contains(a.Body, fmt.Sprintf("%q", name))
	}) {
		t.Fatalf("%s did not become %s: %d %s", name, status, a.Status, a.Body)
	}
}
