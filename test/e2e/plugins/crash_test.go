package plugins

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestKilledPluginsAreReplacedDuringCalls(t *testing.T) {
	provider, redis := testenv.StartOpenIDProvider(t, "http://127.0.0.1:1/callback"), testenv.StartRedis(t)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config(harness.OIDCAuth(provider.Issuer)+"sessionStore: {adapter: redis, url: \"redis://"+redis.Addr+"/0\"}\n"))
	bearer := "Bearer " + harness.MachineToken(t, provider.Issuer)
	waitForStatusAs(t, s, bearer, "sample", "running")
	l := harness.StartLoad(t, 200, s.OpenSession(t, "Authorization", bearer), s.OpenSession(t, "Authorization", bearer))

	forged := harness.MachineToken(t, provider.Issuer)
	ctx, stop := context.WithCancel(t.Context())
	bad := make(chan error, 1)
	opened := make(chan []time.Duration, 1)
	go func() { bad <- checkForgeriesRefused(ctx, s, forged) }()
	go func() { opened <- openAndCloseSessions(ctx, t, s, bearer) }()
	for _, plugin := range []string{"plugin serve auth oidc", "plugin serve sessionstore redis"} {
		for range 20 {
			killAndWaitForReplacement(t, s, plugin)
			l.WaitForCalls(t, 20)
		}
	}
	stop()
	l.Stop()
	if err := <-bad; err != nil {
		t.Error(err)
	}
	longest := time.Duration(0)
	for _, took := range <-opened {
		longest = max(longest, took)
	}
	for _, o := range l.Failures {
		t.Errorf("a call in an open session failed: %v", o.Err)
	}
	t.Logf("%d calls, 40 kills; opening a session took at most %v", l.Calls, longest)
}

// killAndWaitForReplacement kills a plugin and waits until its replacement runs.
func killAndWaitForReplacement(t *testing.T, s *harness.Server, plugin string) {
	t.Helper()
	replaced := func() int { return strings.Count(s.Log.String(), "plugin restarted") }
	before := replaced()
	harness.KillProcess(t, processID(t, s, plugin))
	if !testkit.Within(harness.Timeout, func() bool { return replaced() > before }) {
		t.Fatalf("%s was killed, but not replaced", plugin)
	}
}

// processID returns the ID of the process below the server whose command line ends with command.
func processID(t *testing.T, s *harness.Server, command string) int {
	t.Helper()
	id := 0
	if !testkit.Within(harness.Timeout, func() bool {
		for _, p := range s.Processes() {
			if strings.HasSuffix(p.Command, command) && p.Parent != s.Cmd.Process.Pid /* its shim */ {
				id = p.ID
				return true
			}
		}
		return false
	}) {
		t.Fatalf("no process runs %q", command)
	}
	return id
}

// checkForgeriesRefused sends forged versions of a valid token until ctx is done. All of them are different. It returns an
// error if one is accepted or none is rejected.
func checkForgeriesRefused(ctx context.Context, s *harness.Server, token string) error {
	refused := 0
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-pace.C
		forgery := fmt.Sprintf("%s%06d", token[:len(token)-6], i)
		c := &harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", "Bearer " + forgery}}
		status, _, body, err := c.Post(ctx, harness.Initialize)
		if status == http.StatusUnauthorized {
			refused++
		}
		if err == nil && status != http.StatusUnauthorized && status != http.StatusServiceUnavailable {
			return fmt.Errorf("a forged token got %d %s", status, body)
		}
	}
	if refused == 0 {
		return errors.New("no forged token was refused")
	}
	return nil
}

// openAndCloseSessions opens and closes sessions until ctx is done. It returns the time that each took to open. While a
// plugin is being replaced, errors must be temporary and must say when to try again.
func openAndCloseSessions(ctx context.Context, t *testing.T, s *harness.Server, bearer string) []time.Duration {
	var took []time.Duration
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for ctx.Err() == nil {
		<-pace.C
		c := &harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", bearer}}
		began := time.Now()
		status, header, body, err := c.Post(context.WithoutCancel(ctx), harness.Initialize)
		for tries := 0; err == nil && status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" && tries < 10; tries++ {
			<-pace.C // on a slow machine, the new plugin may start too late for the first attempt
			status, header, body, err = c.Post(context.WithoutCancel(ctx), harness.Initialize)
		}
		took = append(took, time.Since(began))
		if err != nil || status != http.StatusOK {
			t.Errorf("opening a session while plugins are replaced: %d %s %v", status, body, err)
			continue
		}
		s.Do(t, "DELETE", "/mcp", nil, "Authorization: "+bearer, "X-Workspace-Id: "+harness.Workspace, "Mcp-Session-Id: "+header.Get("Mcp-Session-Id"))
	}
	return took
}
