package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// An app of the revision without sessions asks in its results, so one process asks everybody: clients
// of the same revision, and through their sessions those of the older ones.
func TestAThousandCallersOfBothRevisionsAreAskedTheirOwn(t *testing.T) {
	const callers = 1000
	c := townOf(t, stateless, callers, "")
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	for _, round := range []struct {
		stateless func(i int) bool
		held      bool // at the gate, until all have begun
	}{
		{func(i int) bool { return i%4 < 2 }, true}, // in each workspace one half
		{func(i int) bool { return i%4 >= 2 }, false},
	} {
		clients := c.clients(ctx, t, callers, round.stateless)
		call := func(i int, begun func()) error {
			k := &talk{mcpClient: clients[i], tool: "stateless__ask", nonce: c.nonce(i), begun: begun}
			return k.goes(ctx, "progress", "progress", "question", "progress", "answer")
		}
		if round.held {
			c.held(t, callers, call)
		} else {
			each(t, callers, func(i int) error { return call(i, nil) })
		}
	}
}

// An app of the older revisions does not say for which call it asks, so each session it asks has a
// process of its own. Here many callers share a session: what is asked reaches their session, and
// what they answer reaches the call that asked.
func TestAThousandCallersOfSharedSessionsAreAskedTheirOwn(t *testing.T) {
	const callers, sessions = 1000, 40
	c := townOf(t, teller, sessions, fmt.Sprintf("mcp: {maxInstances: %d}\n", sessions))
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	clients := c.clients(ctx, t, sessions, inSessions)
	if err := c.opensTheGate(); err != nil {
		t.Fatal(err)
	}
	parties := make([]*party, sessions)
	for i := range parties {
		parties[i] = &party{asked: map[string]int{}}
	}
	ask := func(i int) error {
		k := &talk{mcpClient: clients[i%sessions], tool: "teller__ask", nonce: c.nonce(i), id: i, party: parties[i%sessions]}
		k.party.joins(k.nonce)
		return k.goes(ctx, "progress", "progress", "answer")
	}
	// The first question tells that the app asks; from then on each session has an instance of its own.
	for i := range c.residents {
		if err := ask(callers + i); err != nil {
			t.Fatal(err)
		}
	}
	each(t, callers, ask)
}

func TestOnlySoManySessionsHaveAProcessOfTheirOwn(t *testing.T) {
	t.Parallel()
	c := townOf(t, teller, 2, "mcp: {maxInstances: 1}\n")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	clients := c.clients(ctx, t, 2, inSessions)
	ask := func(client int, nonce string, begun func()) error {
		k := &talk{mcpClient: clients[client], tool: "teller__ask", nonce: nonce, begun: begun}
		return k.goes(ctx, "progress", "question", "progress", "answer")
	}
	var refused error
	for _, step := range []struct {
		client int
		begun  func() // what happens meanwhile
	}{
		{0, nil}, // shows that the app asks
		{0, func() { refused = ask(1, "too many", nil) }},
		{1, nil}, // the first one's is idle now, and ends
	} {
		if err := ask(step.client, "one of few", step.begun); err != nil {
			t.Fatal(err)
		}
	}
	if refused == nil || !strings.Contains(refused.Error(), "all 1 instances of the session pool are in use") {
		t.Errorf("while the only one is in use: %v", refused)
	}
}
