package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// tenant is a user with a workspace of their own, in which an app is running.
type tenant struct {
	name, bearer, workspace string
}

// tenantServer is a server with two tenants, Alice and Bob. Both have the same app.
type tenantServer struct {
	*harness.Server
	app     string
	tenants []tenant
}

// serveTenants starts a server that allows the given number of sessions. It installs a bundle of the given kind for
// both tenants.
func serveTenants(t *testing.T, character string, sessions int, settings string) tenantServer {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, `tokens:
- {token: the-token-of-alice-1, subject: alice, orgRole: owner, expires: 2099-01-01T00:00:00Z}
- {token: the-token-of-bob-001, subject: bob, orgRole: owner, expires: 2099-01-01T00:00:00Z}
`)
	s := harness.Serve(t, harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\nlimits: {sessions: 0, calls: 0, callsPerSecond: 0}\n"+settings), harness.Env(fmt.Sprintf("MCP_MAX_SESSIONS=%d", sessions)))
	c := tenantServer{Server: s, app: character, tenants: []tenant{{name: "alice", bearer: "Bearer the-token-of-alice-1"}, {name: "bob", bearer: "Bearer the-token-of-bob-001"}}}
	for i := range c.tenants {
		c.tenants[i].workspace = c.installFor(t, c.tenants[i])
	}
	if c.tenants[0].workspace == c.tenants[1].workspace {
		t.Fatalf("both tenants have the workspace %s", c.tenants[0].workspace)
	}
	return c
}

// installFor installs the app in the tenant's workspace and returns the workspace's ID.
func (c tenantServer) installFor(t *testing.T, r tenant) string {
	t.Helper()
	var who struct{ Workspaces []struct{ ID string } }
	a := c.Do(t, "GET", "/v1/workspace", nil, "Authorization: "+r.bearer)
	if err := json.Unmarshal([]byte(a.Body), &who); err != nil || len(who.Workspaces) != 2 {
		t.Fatalf("the workspaces of %s: %d %s", r.name, a.Status, a.Body)
	}
	workspace := who.Workspaces[1].ID                                                                // the first workspace is shared by all users
	install := map[string]any{"path": harness.GoBundle(t, c.app, c.app), "startTimeoutSeconds": 600} // many apps start at the same time
	if a := c.Do(t, "POST", "/v1/apps/install", install, "Authorization: "+r.bearer, "X-Workspace-Id: "+workspace); a.Status != http.StatusOK {
		t.Fatalf("install for %s: %d %s", r.name, a.Status, a.Body)
	}
	return workspace
}

// tenantOf returns the tenant of the i-th caller.
func (c tenantServer) tenantOf(i int) tenant { return c.tenants[i%len(c.tenants)] }

// textOf returns a text that no other caller sends.
func (c tenantServer) textOf(i int) string { return fmt.Sprintf("%s-%04d", c.tenantOf(i).name, i) }

// openGate lets the waiting calls in the tenants' apps continue.
func (c tenantServer) openGate() (err error) {
	for _, r := range c.tenants {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.Home, "workspaces", r.workspace, "apps", c.app, "data", harness.GateFile), nil, 0o600))
	}
	return err
}

// initializeWithElicitation is the initialize request of a client that answers questions.
var initializeWithElicitation = strings.Replace(harness.Initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)

// clients returns n clients. The tenants take turns. Each client that is not stateless has a session of its own.
func (c tenantServer) clients(ctx context.Context, t *testing.T, n int, stateless func(i int) bool) []*harness.MCPClient {
	t.Helper()
	clients := make([]*harness.MCPClient, n)
	const lanes = 16 // the number of clients that open their sessions at the same time
	concurrently(t, lanes, func(lane int) error {
		for i := lane; i < n; i += lanes {
			who := c.tenantOf(i)
			client := &harness.MCPClient{URL: c.URL, Headers: []string{"Authorization", who.bearer, "X-Workspace-Id", who.workspace}, Stateless: stateless(i)}
			clients[i] = client
			if client.Stateless {
				continue
			}
			status, header, body, err := client.Post(ctx, initializeWithElicitation)
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("initialize: %d %s %w", status, body, err)
			}
			client.Session = header.Get("Mcp-Session-Id")
		}
		return nil
	})
	return clients
}

// callTogether makes n calls that wait at the gate. It opens the gate when all calls have started.
func (c tenantServer) callTogether(t *testing.T, n int, call func(i int, begun func()) error) {
	t.Helper()
	var begun sync.WaitGroup
	begun.Add(n)
	opened := make(chan error, 1)
	go func() {
		begun.Wait()
		opened <- c.openGate()
	}()
	concurrently(t, n, func(i int) error {
		began := sync.OnceFunc(begun.Done)
		defer began() // a failed call must not block the others
		return call(i, began)
	})
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// concurrently runs n functions at the same time. It stops the test if one of them fails.
func concurrently(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := do(i); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
