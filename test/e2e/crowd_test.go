package e2e

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
)

// resident is someone in a workspace of their own, where an app runs.
type resident struct {
	name, bearer, workspace string
}

// town is a server and who lives there: Alice and Bob, each with the same app.
type town struct {
	*server
	app       string
	residents []resident
}

// townOf starts a server where as many sessions as wanted may be, and installs an app of a
// character for both residents.
func townOf(t *testing.T, character string, sessions int, settings string) town {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, tokens, `tokens:
- {token: the-token-of-alice-1, subject: alice, orgRole: owner, expires: 2099-01-01T00:00:00Z}
- {token: the-token-of-bob-001, subject: bob, orgRole: owner, expires: 2099-01-01T00:00:00Z}
`)
	s := serve(t, config("auth: {adapter: static, audience: any, file: "+tokens+"}\nlimits: {sessions: 0}\n"+settings), env(fmt.Sprintf("MCP_MAX_SESSIONS=%d", sessions)))
	c := town{server: s, app: character, residents: []resident{{name: "alice", bearer: "Bearer the-token-of-alice-1"}, {name: "bob", bearer: "Bearer the-token-of-bob-001"}}}
	for i := range c.residents {
		c.residents[i].workspace = c.settle(t, c.residents[i])
	}
	if c.residents[0].workspace == c.residents[1].workspace {
		t.Fatalf("both live in %s", c.residents[0].workspace)
	}
	return c
}

// settle installs the app in the workspace of its own that a resident has.
func (c town) settle(t *testing.T, r resident) string {
	t.Helper()
	var who struct{ Workspaces []struct{ ID string } }
	a := c.do(t, "GET", "/v1/workspace", nil, "Authorization: "+r.bearer)
	if err := json.Unmarshal([]byte(a.body), &who); err != nil || len(who.Workspaces) != 2 {
		t.Fatalf("the workspaces of %s: %d %s", r.name, a.status, a.body)
	}
	workspace := who.Workspaces[1].ID // after the one that everybody has
	install := map[string]any{"path": goBundle(t, c.app, c.app)}
	if a := c.do(t, "POST", "/v1/apps/install", install, "Authorization: "+r.bearer, "X-Workspace-Id: "+workspace); a.status != http.StatusOK {
		t.Fatalf("install for %s: %d %s", r.name, a.status, a.body)
	}
	return workspace
}

// of is the resident who the i-th caller is.
func (c town) of(i int) resident { return c.residents[i%len(c.residents)] }

// nonce is a word that no other caller says.
func (c town) nonce(i int) string { return fmt.Sprintf("%s-%04d", c.of(i).name, i) }

// opensTheGate lets the calls go on that wait in the residents' apps.
func (c town) opensTheGate() (err error) {
	for _, r := range c.residents {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.home, "workspaces", r.workspace, "apps", c.app, "data", gate), nil, 0o600))
	}
	return err
}

// asking is an initialize of a client that answers questions.
var asking = strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)

// clients are n clients of the residents in turn. Those that are not stateless have a session each.
func (c town) clients(ctx context.Context, t *testing.T, n int, stateless func(i int) bool) []*mcpClient {
	t.Helper()
	clients := make([]*mcpClient, n)
	const lanes = 16 // opening them all at once is not what is asked about
	each(t, lanes, func(lane int) error {
		for i := lane; i < n; i += lanes {
			who := c.of(i)
			client := &mcpClient{url: c.url, headers: []string{"Authorization", who.bearer, "X-Workspace-Id", who.workspace}, stateless: stateless(i)}
			clients[i] = client
			if client.stateless {
				continue
			}
			status, header, body, err := client.post(ctx, asking)
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("initialize: %d %s %w", status, body, err)
			}
			client.session = header.Get("Mcp-Session-Id")
		}
		return nil
	})
	return clients
}

// held makes n calls that all wait at the gate, and opens it when every one of them has begun.
func (c town) held(t *testing.T, n int, call func(i int, begun func()) error) {
	t.Helper()
	var begun sync.WaitGroup
	begun.Add(n)
	opened := make(chan error, 1)
	go func() {
		begun.Wait()
		opened <- c.opensTheGate()
	}()
	each(t, n, func(i int) error {
		began := sync.OnceFunc(begun.Done)
		defer began() // one that fails keeps no other waiting
		return call(i, began)
	})
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// each does n things at once.
func each(t *testing.T, n int, do func(i int) error) {
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

func inSessions(int) bool { return false }

func TestAThousandCallersOfTwoWorkspacesGetTheirOwn(t *testing.T) {
	const callers = 1000
	c := townOf(t, teller, callers, "")
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	clients := c.clients(ctx, t, callers, inSessions)
	c.held(t, callers, func(i int, begun func()) error {
		k := &talk{mcpClient: clients[i], tool: "teller__tell", nonce: c.nonce(i), begun: begun}
		return k.goes(ctx, "progress", "progress", "progress", "answer")
	})

	// A session is its owner's: the other one, with the right id, finds none.
	stranger := &mcpClient{url: c.url, headers: clients[1].headers, session: clients[0].session}
	if status, _, body, err := stranger.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil || status != http.StatusNotFound {
		t.Errorf("Bob in Alice's session: %d %s %v", status, body, err)
	}
}
