package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// touch makes the instance that serves a client announce an update of the view.
func touch(t *testing.T, y *Manager, client *interact.Client, asker interact.Asker) {
	t.Helper()
	params := `{"name":"touch","arguments":{"text":"ui://view/main"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	if raw, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(params)}, Client: client, Asker: asker, Owner: "o"}); err != nil {
		t.Fatalf("%s (%v)", raw, err)
	}
}

func TestASessionReceivesUpdatesFromItsOwnInstance(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	heard := make(chan Notification, 100)
	defer y.Listen(ws, func(x Notification) { heard <- x })()
	alice, bob, p := interact.NewClient("alice", false, canElicit), interact.NewClient("bob", false, canElicit), saysWord("red")
	ask := func(c *interact.Client) {
		if _, err := askTool(t.Context(), y, "hello", c, p); err != nil {
			t.Fatal(err)
		}
	}
	received := func() string {
		select {
		case x := <-heard:
			slices.Sort(x.Except)
			return fmt.Sprintf("%s fromPool=%t except=%v", x.Session, x.FromPool, x.Except)
		case <-time.After(time.Minute):
			return "nothing"
		}
	}
	ask(alice) // this call, on the shared instance, shows that the app asks
	subscribe := func(session string) {
		if err := y.Subscribe(t.Context(), ws, "notes", session, "usr_1", "ui://view/main"); err != nil {
			t.Fatal(err)
		}
	}
	subscribe("alice") // before her instance starts
	ask(alice)
	ask(bob)
	subscribe("bob") // after his has started
	touch(t, y, alice, p)
	expect(t, "an update from alice's instance", received(), "alice fromPool=true except=[]")
	touch(t, y, bob, p)
	expect(t, "an update from bob's instance", received(), "bob fromPool=true except=[]")
	touch(t, y, nil, nil)
	expect(t, "an update from the shared instance", received(), " fromPool=false except=[alice bob]")
	if err := y.Unsubscribe(t.Context(), ws, "notes", "bob", "usr_1", "ui://view/main"); err != nil {
		t.Fatal(err)
	}
	touch(t, y, bob, p)
	touch(t, y, alice, p)
	expect(t, "after bob's subscription ended", received(), "alice fromPool=true except=[]")
	y.EndSession("alice")
	touch(t, y, nil, nil)
	expect(t, "when alice's instance is gone", received(), " fromPool=false except=[bob]")
}

func TestStatelessClientsReceiveUpdatesFromTheirInstance(t *testing.T) {
	y := installNotes(t, modeTalk, nil)
	heard := make(chan Notification, 10_000)
	defer y.Listen(ws, func(x Notification) { heard <- x })()
	if err := y.Subscribe(t.Context(), ws, "notes", "", "usr_1", "ui://view/main"); err != nil {
		t.Fatal(err)
	}
	stateless := interact.NewClient("", true, nil)
	testkit.Eventually(t, "an update", func() bool { // the bundle handles subscriptions of this revision asynchronously
		touch(t, y, stateless, nil)
		select {
		case x := <-heard:
			if x.Session != "" || !x.FromPool {
				t.Errorf("received %+v", x)
			}
			return true
		default:
			return false
		}
	})
}

// touchAfterAsking is like touch, but with a stateless client that can be asked. In an app that speaks an older
// revision, such a call gets its own instance.
func touchAfterAsking(t *testing.T, y *Manager) {
	t.Helper()
	params := `{"name":"touch","arguments":{"text":"ui://view/main"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`
	if raw, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(params)}, Client: interact.NewClient("", true, nil), Owner: "alice"}); err != nil {
		t.Fatalf("%s (%v)", raw, err)
	}
}

func TestStatelessClientsReceiveUpdatesFromTheInstancesThatServeTheirCalls(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	heard := make(chan Notification, 100)
	defer y.Listen(ws, func(x Notification) { heard <- x })()
	ask := func() {
		raw, err := statelessAsk(t.Context(), y, "alice", "what word?", "")
		if _, err := answered(t.Context(), y, "alice", firstQuestion(t, raw, err), "red"); err != nil {
			t.Fatal(err)
		}
	}
	received := func(when string) {
		t.Helper()
		touchAfterAsking(t, y)
		select {
		case x := <-heard:
			if x.Method != "notifications/resources/updated" || x.Session != "" || !x.FromPool {
				t.Errorf("%s: received %+v", when, x)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: nothing was received", when)
		}
	}
	subscription := func(change func(ctx context.Context, workspace, server, session, user, uri string) error) {
		t.Helper()
		if err := change(t.Context(), ws, "notes", "", "usr_1", "ui://view/main"); err != nil {
			t.Fatal(err)
		}
	}
	ask() // this call, on the shared instance, shows that the app asks
	subscription(y.Subscribe)
	received("subscribed before the instance started")
	subscription(y.Unsubscribe)
	subscription(y.Subscribe)
	received("subscribed after the instance started")
}
