package mcp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// An app that uses the stateless revision asks its questions in results. One process can therefore serve all clients,
// with sessions and without.
func TestAThousandCallersOfBothRevisionsGetTheirOwnQuestions(t *testing.T) {
	const callers = 1000
	c := serveTenants(t, harness.Stateless, callers, "")
	ctx, cancel := context.WithTimeout(t.Context(), 6*harness.Timeout)
	defer cancel()
	for _, round := range []struct {
		stateless func(i int) bool
		held      bool // whether calls wait at the gate until all have started
	}{
		{func(i int) bool { return i%4 < 2 }, true}, // one half in each workspace
		{func(i int) bool { return i%4 >= 2 }, false},
	} {
		clients := c.clients(ctx, t, callers, round.stateless)
		call := func(i int, begun func()) error {
			k := &toolCall{MCPClient: clients[i], tool: "stateless__ask", text: c.textOf(i), onProgress: begun}
			return k.run(ctx, "progress", "progress", "question", "progress", "answer")
		}
		if round.held {
			c.callTogether(t, callers, call)
		} else {
			concurrently(t, callers, func(i int) error { return call(i, nil) })
		}
	}
}

// An app that uses an older revision does not say to which call a question belongs, so each session has its own
// process. In this test, many callers share a session. A question reaches the session that it belongs to, and the
// answer reaches the call that asked.
func TestAThousandCallersOfSharedSessionsGetTheirOwnQuestions(t *testing.T) {
	const callers, sessions = 1000, 40
	c := serveTenants(t, harness.Asking, sessions, fmt.Sprintf("mcp: {maxInstances: %d}\n", sessions))
	ctx, cancel := context.WithTimeout(t.Context(), 6*harness.Timeout)
	defer cancel()
	clients := c.clients(ctx, t, sessions, withSession)
	if err := c.openGate(); err != nil {
		t.Fatal(err)
	}
	parties := make([]*sharedSession, sessions)
	for i := range parties {
		parties[i] = &sharedSession{asked: map[string]int{}}
	}
	ask := func(i int) error {
		k := &toolCall{MCPClient: clients[i%sessions], tool: "asker__ask", text: c.textOf(i), id: i, shared: parties[i%sessions]}
		k.shared.add(k.text)
		return k.run(ctx, "progress", "progress", "answer")
	}
	// The first question shows the server that the app asks questions. From then on, each session has its own instance.
	for i := range c.tenants {
		if err := ask(callers + i); err != nil {
			t.Fatal(err)
		}
	}
	concurrently(t, callers, ask)
}

func TestTheSessionPoolHasALimit(t *testing.T) {
	t.Parallel()
	c := serveTenants(t, harness.Asking, 2, "mcp: {maxInstances: 1}\n")
	ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Timeout)
	defer cancel()
	clients := c.clients(ctx, t, 2, withSession)
	ask := func(client int, nonce string, begun func()) error {
		k := &toolCall{MCPClient: clients[client], tool: "asker__ask", text: nonce, onProgress: begun}
		return k.run(ctx, "progress", "question", "progress", "answer")
	}
	var refused error
	for _, step := range []struct {
		client int
		begun  func() // runs when the call has started
	}{
		{0, nil}, // shows the server that the app asks questions
		{0, func() { refused = ask(1, "too many", nil) }},
		{1, nil}, // the first session's instance is idle now, so it is stopped
	} {
		if err := ask(step.client, "one of few", step.begun); err != nil {
			t.Fatal(err)
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "all 1 instances of the session pool are in use") {
		t.Errorf("while the only instance is in use: %v", refused)
	}
}

func withSession(int) bool { return false }

func TestAThousandCallersInTwoWorkspacesGetTheirOwnResults(t *testing.T) {
	const callers = 1000
	c := serveTenants(t, harness.Asking, callers, "")
	ctx, cancel := context.WithTimeout(t.Context(), 6*harness.Timeout)
	defer cancel()
	clients := c.clients(ctx, t, callers, withSession)
	c.callTogether(t, callers, func(i int, begun func()) error {
		k := &toolCall{MCPClient: clients[i], tool: "asker__report", text: c.textOf(i), onProgress: begun}
		return k.run(ctx, "progress", "progress", "progress", "answer")
	})

	// A session belongs to its owner. Another user gets 404, even with the right ID.
	stranger := &harness.MCPClient{URL: c.URL, Headers: clients[1].Headers, Session: clients[0].Session}
	if status, _, body, err := stranger.Post(ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil || status != http.StatusNotFound {
		t.Errorf("Bob in Alice's session: %d %s %v", status, body, err)
	}
}
