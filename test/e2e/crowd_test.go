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

// resident is someone in a workspace of their own, where the app "teller" runs.
type resident struct {
	name, bearer, workspace string
}

// settle installs the teller in the workspace of a token's owner.
func settle(t *testing.T, s *server, name, token string) resident {
	t.Helper()
	r := resident{name: name, bearer: "Bearer " + token}
	var who struct{ Workspaces []struct{ ID string } }
	a := s.do(t, "GET", "/v1/workspace", nil, "Authorization: "+r.bearer)
	if err := json.Unmarshal([]byte(a.body), &who); err != nil || len(who.Workspaces) != 2 {
		t.Fatalf("the workspaces of %s: %d %s", name, a.status, a.body)
	}
	r.workspace = who.Workspaces[1].ID // after the one that everybody has
	install := map[string]any{"path": goBundle(t, "teller", teller)}
	if a := s.do(t, "POST", "/v1/apps/install", install, "Authorization: "+r.bearer, "X-Workspace-Id: "+r.workspace); a.status != http.StatusOK {
		t.Fatalf("install for %s: %d %s", name, a.status, a.body)
	}
	return r
}

// opensTheGate lets the calls go on that wait in the resident's app.
func (r resident) opensTheGate(s *server) error {
	return os.WriteFile(filepath.Join(s.home, "workspaces", r.workspace, "apps", "teller", "data", gate), nil, 0o600)
}

// asking is an initialize of a client that answers questions.
var asking = strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)

func TestAThousandCallersOfTwoWorkspacesGetTheirOwn(t *testing.T) {
	const callers, askers = 1000, 8
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, tokens, `tokens:
- {token: the-token-of-alice-1, subject: alice, orgRole: owner, expires: 2099-01-01T00:00:00Z}
- {token: the-token-of-bob-001, subject: bob, orgRole: owner, expires: 2099-01-01T00:00:00Z}
`)
	s := serve(t, config("auth: {adapter: static, audience: any, file: "+tokens+"}\n"), env(fmt.Sprintf("MCP_MAX_SESSIONS=%d", 2*callers)))
	residents := []resident{settle(t, s, "alice", "the-token-of-alice-1"), settle(t, s, "bob", "the-token-of-bob-001")}
	if residents[0].workspace == residents[1].workspace {
		t.Fatalf("both live in %s", residents[0].workspace)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()

	clients := make([]*mcpClient, callers)
	each := func(n int, do func(i int) error) {
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
	each(16, func(lane int) error { // opening them all at once is not what is asked about
		for i := lane; i < callers; i += 16 {
			who := residents[i%2]
			c := &mcpClient{url: s.url, headers: []string{"Authorization", who.bearer, "X-Workspace-Id", who.workspace}}
			status, header, body, err := c.post(ctx, asking)
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("initialize: %d %s %w", status, body, err)
			}
			c.session = header.Get("Mcp-Session-Id")
			clients[i] = c
		}
		return nil
	})

	var begun sync.WaitGroup
	begun.Add(callers)
	opened := make(chan error, 1)
	go func() {
		begun.Wait() // every call has begun, and none can end
		opened <- errors.Join(residents[0].opensTheGate(s), residents[1].opensTheGate(s))
	}()
	each(callers, func(i int) error {
		began := sync.OnceFunc(begun.Done)
		defer began() // one that fails keeps no other waiting
		return clients[i].told(ctx, fmt.Sprintf("%s-%04d", residents[i%2].name, i), began)
	})
	if err := <-opened; err != nil {
		t.Fatal(err)
	}

	// The first question tells that the app asks; from then on each session has an instance of its own.
	for i := range 2 {
		if err := clients[i].asked(ctx, "first-"+residents[i].name); err != nil {
			t.Fatal(err)
		}
	}
	each(askers, func(i int) error {
		return clients[i].asked(ctx, fmt.Sprintf("%s-asks-%d", residents[i%2].name, i))
	})

	// A session is its owner's: the other one, with the right id, finds none.
	stranger := &mcpClient{url: s.url, headers: clients[1].headers, session: clients[0].session}
	if status, _, body, err := stranger.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil || status != http.StatusNotFound {
		t.Errorf("Bob in Alice's session: %d %s %v", status, body, err)
	}
}
