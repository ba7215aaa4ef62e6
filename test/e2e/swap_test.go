package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// audience is what the tokens of these tests are meant for.
const audience = "https://ropewalk.test/mcp"

// machineToken is an access token of the provider's client "machine", an admin of org_1.
func machineToken(t *testing.T, issuer string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"tools"}, "resource": {audience}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("machine", "machine-secret-0123456789")
	a := exchange(t, req)
	token, _ := a.object(t)["access_token"].(string)
	if token == "" {
		t.Fatalf("the provider answered %d %s", a.status, a.body)
	}
	return token
}

// oidcAuth is the auth section for the provider; more is added to it.
func oidcAuth(issuer string, more ...string) string {
	lines := append([]string{
		"adapter: oidc", "issuer: " + issuer, "audience: " + audience, "roleClaim: roles", "roles: {staff-admin: admin}",
	}, more...)
	return "auth:\n  " + strings.Join(lines, "\n  ") + "\n"
}

// reload writes another configuration and has the server read it.
func (s *server) reload(t *testing.T, yaml string) (said string, err error) {
	t.Helper()
	write(t, filepath.Join(s.home, "ropewalk.yaml"), yaml)
	out, err := exec.CommandContext(t.Context(), binary, "reload", "--home", s.home).CombinedOutput()
	return string(out), err
}

func (s *server) mustReload(t *testing.T, yaml string, sections ...string) {
	t.Helper()
	said, err := s.reload(t, yaml)
	if err != nil {
		t.Fatalf("reload: %v: %s", err, said)
	}
	for _, section := range sections {
		if !strings.Contains(said, section) {
			t.Errorf("reload says %q, and nothing of %s", said, section)
		}
	}
}

// pluginBinary builds a built-in adapter as a plugin of its own and returns its path and sha256.
func pluginBinary(t *testing.T, name string) (path, sum string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "../../cmd/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	out, err := exec.CommandContext(t.Context(), "sha256sum", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return path, strings.Fields(string(out))[0]
}

func TestReloadingAStoreAnAuthSettingAndAPluginBinaryLosesNoCallAndNoSession(t *testing.T) {
	provider, redis := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback"), testenv.StartRedis(t)
	s := serve(t, flag("--sample"), config(oidcAuth(provider.Issuer)))
	bearer := "Bearer " + machineToken(t, provider.Issuer)
	s.reachesAs(t, bearer, "sample", "running")
	var clients []*mcpClient
	for range 8 {
		clients = append(clients, s.openSession(t, "Authorization", bearer))
	}
	l := startLoad(t, 200, clients...)
	l.goesOn(t, 100)

	store := "sessionStore: {adapter: redis, url: \"redis://" + redis.Addr + "/0\"}\n"
	s.mustReload(t, oidcAuth(provider.Issuer)+store, "sessionStore")
	l.goesOn(t, 200)
	s.mustReload(t, oidcAuth(provider.Issuer, "organizationId: org_1")+store, "auth")
	l.goesOn(t, 200)
	path, sum := pluginBinary(t, "auth-oidc")
	s.mustReload(t, oidcAuth(provider.Issuer, "organizationId: org_1", "path: "+path, "sha256: "+sum)+store, "auth")
	l.goesOn(t, 200)
	s.mustReload(t, oidcAuth(provider.Issuer)+"sessionStore: memory\n", "auth", "sessionStore")
	s.mustReload(t, oidcAuth(provider.Issuer)+store, "sessionStore")
	l.goesOn(t, 200)

	if said, err := s.reload(t, oidcAuth(provider.Issuer, "organisationId: org_1")+store); err == nil || !strings.Contains(said, "organizationId") {
		t.Errorf("a setting that is none: %v, %s", err, said)
	}
	if said, err := s.reload(t, oidcAuth(provider.Issuer, "path: "+path, "sha256: "+strings.Repeat("0", 64))); err == nil || !strings.Contains(said, path) {
		t.Errorf("a binary that is another one: %v, %s", err, said)
	}
	l.goesOn(t, 200)
	l.end()
	for _, o := range l.outcomes {
		t.Errorf("a call failed: %v", o.err)
	}
	if keys := strings.TrimPrefix(strings.TrimSpace(redis.Do("DBSIZE")), ":"); keys != "8" {
		t.Errorf("the live sessions were not written to the new store: DBSIZE says %s", keys)
	}
	for _, c := range clients {
		if _, err := c.echo(t.Context(), "still-here"); err != nil {
			t.Errorf("a session was dropped: %v", err)
		}
	}
	t.Logf("%d calls, 0 may fail", l.calls)
}

func TestASignalReloadsAsTheCommandDoes(t *testing.T) {
	t.Parallel()
	s := serve(t, config("features: {toolDiscovery: true}\n"))
	says := func(text string) func() bool {
		return func() bool { return strings.Contains(s.log.String(), text) }
	}
	hangup := func(yaml, want string) {
		t.Helper()
		write(t, filepath.Join(s.home, "ropewalk.yaml"), yaml)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil || !eventually(patience, says(want)) {
			t.Errorf("SIGHUP: %v; the log does not say %q", err, want)
		}
	}
	hangup("features: {mcpServer: false}\n", "configuration reloaded: changed=[\"features\"]")
	if a := s.do(t, "GET", "/mcp", nil); a.status != http.StatusNotFound || a.body != "Not found" {
		t.Errorf("/mcp, switched off: %d %s", a.status, a.body)
	}
	hangup("features: {mcpSever: true}\n", "configuration not reloaded")
	hangup("sessionStore: {adapter: redis, url: \"redis://127.0.0.1:1/0\"}\n", "connection refused")
	if a := s.do(t, "GET", "/mcp", nil); a.status != http.StatusNotFound || s.hasEnded() {
		t.Errorf("/mcp, after reloads that did not pass: %d %s", a.status, a.body)
	}
}

func TestExchangingTheProviderSwapsWhoIsLetInAndBreaksNothing(t *testing.T) {
	provider := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback")
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, tokens, "tokens:\n  - {token: the-token-of-alice-1, subject: alice, orgRole: admin, expires: 2099-01-01T00:00:00Z}\n")
	s := serve(t, flag("--sample"), config("auth: {adapter: static, audience: any, file: "+tokens+"}\n"))
	before, after := "Bearer the-token-of-alice-1", "Bearer "+machineToken(t, provider.Issuer)
	s.reachesAs(t, before, "sample", "running")
	if status, _, _, _ := (&mcpClient{url: s.url, headers: []string{"Authorization", after}}).post(t.Context(), initialize); status != http.StatusUnauthorized {
		t.Errorf("before the swap a token of the new provider gets %d", status)
	}
	l := startLoad(t, 200, s.openSession(t, "Authorization", before), s.openSession(t, "Authorization", before))
	l.goesOn(t, 100)
	asked := time.Now() // from here on the swap may happen at any moment
	s.mustReload(t, oidcAuth(provider.Issuer), "auth")
	newcomer := s.openSession(t, "Authorization", after)
	if _, err := newcomer.echo(t.Context(), "newcomer"); err != nil {
		t.Errorf("after the swap a token of the new provider gets %v", err)
	}
	l.goesOn(t, 100)
	l.end()
	if l.statuses[http.StatusOK] == 0 || l.statuses[http.StatusUnauthorized] == 0 || l.statuses[http.StatusOK]+l.statuses[http.StatusUnauthorized] != l.calls {
		t.Errorf("of %d calls with a token of the old provider: %v", l.calls, l.statuses)
	}
	for _, o := range l.outcomes {
		if o.ended.Before(asked) {
			t.Errorf("a call was refused %v before the reload: %v", asked.Sub(o.ended), o.err)
		}
	}
	late := s.do(t, "POST", "/mcp", initialize, "Authorization: "+before, "X-Workspace-Id: "+workspace, "Accept: application/json, text/event-stream")
	if late.status != http.StatusUnauthorized || !strings.Contains(late.header.Get("WWW-Authenticate"), `error="unauthorized"`) {
		t.Errorf("after the swap the old token gets %d %v", late.status, late.header)
	}
}

// reachesAs is reaches for a caller who must show who it is.
func (s *server) reachesAs(t *testing.T, bearer, name, status string) {
	t.Helper()
	var a answer
	if !eventually(patience, func() bool {
		a = s.do(t, "GET", "/v1/apps", nil, "Authorization: "+bearer, "X-Workspace-Id: "+workspace)
		return a.status == http.StatusOK && strings.Contains(a.body, fmt.Sprintf("%q", status)) && strings.Contains(a.body, fmt.Sprintf("%q", name))
	}) {
		t.Fatalf("%s does not become %s: %d %s", name, status, a.status, a.body)
	}
}

func TestKilledPluginsAreReplacedWhileCallsGoOn(t *testing.T) {
	provider, redis := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback"), testenv.StartRedis(t)
	s := serve(t, flag("--sample"), config(oidcAuth(provider.Issuer)+"sessionStore: {adapter: redis, url: \"redis://"+redis.Addr+"/0\"}\n"))
	bearer := "Bearer " + machineToken(t, provider.Issuer)
	s.reachesAs(t, bearer, "sample", "running")
	l := startLoad(t, 200, s.openSession(t, "Authorization", bearer), s.openSession(t, "Authorization", bearer))

	forged := machineToken(t, provider.Issuer)
	ctx, stop := context.WithCancel(t.Context())
	bad := make(chan error, 1)
	opened := make(chan []time.Duration, 1)
	go func() { bad <- s.neverLetsIn(ctx, forged) }()
	go func() { opened <- s.opensAndCloses(ctx, t, bearer) }()
	for _, plugin := range []string{"plugin serve auth oidc", "plugin serve sessionstore redis"} {
		for range 20 {
			s.killsAndIsReplaced(t, plugin)
			l.goesOn(t, 20)
		}
	}
	stop()
	l.end()
	if err := <-bad; err != nil {
		t.Error(err)
	}
	longest := time.Duration(0)
	for _, took := range <-opened {
		longest = max(longest, took)
	}
	for _, o := range l.outcomes {
		t.Errorf("a call of a session that was open failed: %v", o.err)
	}
	t.Logf("%d calls, 40 kills; the longest that opening a session took is %v", l.calls, longest)
}

// killsAndIsReplaced kills a plugin and waits until the next one serves: one that is killed while it
// starts is another matter.
func (s *server) killsAndIsReplaced(t *testing.T, plugin string) {
	t.Helper()
	replaced := func() int { return strings.Count(s.log.String(), "plugin started again") }
	before := replaced()
	killProcess(t, s.process(t, plugin))
	if !eventually(patience, func() bool { return replaced() > before }) {
		t.Fatalf("%s was killed, and is not replaced", plugin)
	}
}

// process is the id of the process under the server whose command line ends like that.
func (s *server) process(t *testing.T, command string) int {
	t.Helper()
	id := 0
	if !eventually(patience, func() bool {
		for _, p := range s.family() {
			if strings.HasSuffix(p.command, command) && !strings.Contains(p.command, "__shim") {
				id = p.id
				return true
			}
		}
		return false
	}) {
		t.Fatalf("no process runs %q", command)
	}
	return id
}

// neverLetsIn shows forgeries of a good token until ctx ends, each another one, so that the plugin is
// asked about each; an error tells that one was accepted, or that none was ever refused.
func (s *server) neverLetsIn(ctx context.Context, token string) error {
	refused := 0
	for i := 0; ctx.Err() == nil; i++ {
		forgery := fmt.Sprintf("%s%06d", token[:len(token)-6], i)
		c := &mcpClient{url: s.url, headers: []string{"Authorization", "Bearer " + forgery}}
		status, _, body, err := c.post(ctx, initialize)
		if status == http.StatusUnauthorized {
			refused++
		}
		if err == nil && status != http.StatusUnauthorized && status != http.StatusServiceUnavailable {
			return fmt.Errorf("a bad token got %d %s", status, body)
		}
	}
	if refused == 0 {
		return errors.New("a bad token was never refused")
	}
	return nil
}

// opensAndCloses opens and closes sessions until ctx ends, and returns how long each opening took.
// What fails while a plugin is replaced must say that it is for a moment only.
func (s *server) opensAndCloses(ctx context.Context, t *testing.T, bearer string) []time.Duration {
	var took []time.Duration
	for ctx.Err() == nil {
		c := &mcpClient{url: s.url, headers: []string{"Authorization", bearer}}
		began := time.Now()
		status, header, body, err := c.post(context.WithoutCancel(ctx), initialize)
		took = append(took, time.Since(began))
		if err != nil || status != http.StatusOK {
			t.Errorf("opening a session while plugins are replaced gives %d %s %v", status, body, err)
			continue
		}
		s.do(t, "DELETE", "/mcp", nil, "Authorization: "+bearer, "X-Workspace-Id: "+workspace, "Mcp-Session-Id: "+header.Get("Mcp-Session-Id"))
	}
	return took
}

func TestTwoServersOnOneRedisTellElsewhereFromNowhere(t *testing.T) {
	redis := testenv.StartRedis(t)
	settings := config("sessionStore: {adapter: redis, url: \"redis://" + redis.Addr + "/0\"}\n")
	a := serve(t, flag("--sample"), settings, env("MCP_SESSION_TTL_SECONDS=4"))
	b := serve(t, flag("--sample"), settings, env("MCP_SESSION_TTL_SECONDS=4"))
	a.reaches(t, "sample", "running")
	reason := func(s *server, session string) string {
		t.Helper()
		status, _, body, err := (&mcpClient{url: s.url, session: session}).post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if err != nil {
			t.Fatal(err)
		}
		var refusal struct {
			Error struct {
				Code    int
				Message string
				Data    struct{ Reason string }
			}
		}
		if status == http.StatusNotFound && json.Unmarshal(body, &refusal) == nil && refusal.Error.Code == -32000 && refusal.Error.Message == "Session not found" {
			return refusal.Error.Data.Reason
		}
		return fmt.Sprintf("%d %s", status, body)
	}
	c := a.openSession(t)
	if got := reason(b, c.session); got != "unavailable" {
		t.Errorf("a session of the other server: %s", got)
	}
	if got := reason(b, "NEVERWASSUCHASESSION0000000"); got != "not_found" {
		t.Errorf("a session that never was: %s", got)
	}
	if !eventually(patience, func() bool { return reason(b, c.session) == "not_found" }) {
		t.Errorf("after its time the other server says %s", reason(b, c.session))
	}
	if got := reason(a, c.session); got != "not_found" {
		t.Errorf("after its time its own server says %s", got)
	}

	local := a.openSession(t)
	redis.Stop()
	if got := reason(a, "NEVERWASSUCHASESSION0000000"); !strings.HasPrefix(got, "503") {
		t.Errorf("an unknown session while the store is away: %s", got)
	}
	if _, err := local.echo(t.Context(), "local"); err != nil {
		t.Errorf("a local session while the store is away: %v", err)
	}
}
