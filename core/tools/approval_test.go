package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/trust"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// published keeps the events of several goroutines.
type published struct {
	mu  sync.Mutex
	all []core.Event
}

func (p *published) Publish(e core.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, e)
}

func (p *published) count(name string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.all {
		if e.Name == name {
			n++
		}
	}
	return n
}

// held is a namespace whose tool files__delete needs an approval, and files__read none.
type held struct {
	*tools.Namespace
	apps      *fakeApps
	approvals *trust.Approvals
	events    *published
	audit     *auditor
}

func newHeld(t *testing.T, wait time.Duration) *held {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	h := &held{
		apps: &fakeApps{result: `{"content":[]}`, tools: map[string][]core.Tool{core.DefaultWorkspaceID: {
			tool("files", "delete", `{"name":"delete","annotations":{"destructiveHint":true}}`), tool("files", "read", `{"name":"read"}`),
			tool("mail", "send", `{"name":"send"}`),
		}}},
		events: &published{}, audit: &auditor{},
	}
	h.approvals = trust.NewApprovals(trust.ApprovalOptions{Patterns: []string{"destructiveHint", "mail__*"}, Wait: wait, Expiry: time.Minute, Records: s, Events: h.events})
	h.Namespace = tools.New(tools.Options{Apps: h.apps, Events: h.events, Logger: hclog.NewNullLogger(), Audit: h.audit, Approvals: h.approvals})
	return h
}

func (h *held) run(t *testing.T, c core.Caller, name, arguments string) error {
	t.Helper()
	_, err := h.Call(t.Context(), c, tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
	return err
}

// pendingID waits for the request of a call.
func (h *held) pendingID(t *testing.T, admin core.Caller) (id string) {
	t.Helper()
	testkit.Eventually(t, "a call that waits", func() bool {
		all, err := h.approvals.List(t.Context(), admin)
		for _, a := range all {
			if a.State == core.ApprovalPending {
				id = a.ID
			}
		}
		return err == nil && id != ""
	})
	return id
}

func person(id string, role core.Role) core.Caller {
	c := caller(core.DefaultWorkspaceID, role)
	c.User.ID, c.Subject, c.Workspace.Role = id, id, role
	return c
}

func TestACallWaitsUntilAnAdminApprovesIt(t *testing.T) {
	h := newHeld(t, 10*time.Second)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	if err := h.run(t, alice, "files__read", `{}`); err != nil || len(h.apps.Calls()) != 1 {
		t.Fatalf("a tool that needs none: %v", err)
	}
	var seen []string
	done := make(chan error, 1)
	go func() {
		_, err := h.Call(t.Context(), alice, tools.Call{
			Name: "files__delete", Arguments: json.RawMessage(`{"path":"/a"}`), Meta: json.RawMessage(`{"progressToken":7}`),
			Notify: func(n rpc.Notification) { seen = append(seen, string(n.Params)) },
		})
		done <- err
	}()
	id := h.pendingID(t, admin)
	if len(h.apps.Calls()) != 1 {
		t.Error("the call was made before it was approved")
	}
	if _, err := h.approvals.Decide(t.Context(), alice, id, true); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member approved it: %v", err)
	}
	if _, err := h.approvals.Decide(t.Context(), admin, id, true); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the call", done); err != nil || len(h.apps.Calls()) != 2 {
		t.Errorf("%v, %d calls", err, len(h.apps.Calls()))
	}
	if len(seen) == 0 || !strings.Contains(seen[0], `"progressToken":7`) || !strings.Contains(seen[0], id) {
		t.Errorf("progress: %q", seen)
	}
	if h.events.count(core.EventApprovalRequested) != 1 || h.events.count(core.EventApprovalDecided) != 1 {
		t.Errorf("events: %+v", h.events.all)
	}
	if n := len(h.audit.records); n != 2 || h.audit.records[1].Outcome != "allowed" {
		t.Errorf("recorded: %+v", h.audit.records)
	}
}

func TestARefusedCallIsNotMade(t *testing.T) {
	h := newHeld(t, 10*time.Second)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	done := make(chan error, 1)
	go func() { done <- h.run(t, alice, "mail__send", `{}`) }()
	if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), false); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the call", done); core.CodeOf(err) != core.CodeApprovalRefused || len(h.apps.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(h.apps.Calls()))
	}
}

func TestAKeyDoesNotApproveItsOwnCalls(t *testing.T) {
	h := newHeld(t, time.Millisecond)
	admin := person("boss", core.RoleAdmin)
	program := admin
	program.Scope = core.Scope{Key: "key_1", Workspace: core.DefaultWorkspaceID, Role: core.RoleAdmin}
	_ = h.run(t, program, "files__delete", `{}`)
	id := h.pendingID(t, admin)
	if _, err := h.approvals.Decide(t.Context(), program, id, true); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("with the key of the call: %v", err)
	}
	if _, err := h.approvals.Decide(t.Context(), admin, id, true); err != nil {
		t.Error(err)
	}
	if err := h.run(t, admin, "files__delete", `{}`); core.CodeOf(err) != core.CodeApprovalPending {
		t.Errorf("a call of the person instead of the key: %v", err)
	}
}

// TestAThousandReplayedOrAlteredApprovalsExecuteNothing approves one call, makes it once, and then makes it
// again, or another one, in a thousand ways.
func TestAThousandReplayedOrAlteredApprovalsExecuteNothing(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	approve := func() {
		t.Helper()
		if err := h.run(t, alice, "files__delete", `{"path":"/a","n":1}`); core.CodeOf(err) != core.CodeApprovalPending {
			t.Fatalf("%v", err)
		}
		if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), true); err != nil {
			t.Fatal(err)
		}
	}
	approve()
	altered := func(i int) (core.Caller, tools.Call) {
		c, call := alice, tools.Call{Name: "files__delete", Arguments: json.RawMessage(`{"path":"/a","n":1}`)}
		switch i % 8 {
		case 0:
			call.Arguments = json.RawMessage(fmt.Sprintf(`{"path":"/a%d","n":1}`, i%50))
		case 1:
			call.Arguments = json.RawMessage(`{"path":"/a","n":1.0}`)
		case 2:
			call.Arguments = json.RawMessage(`{"path":"/a","n":1,"force":true}`)
		case 3:
			call.Name = "mail__send"
		case 4:
			c = person(fmt.Sprintf("mallory%d", i%20), core.RoleMember)
		case 5:
			call.InputResponses = json.RawMessage(`{"confirm":true}`)
		case 6:
			c.Scope.Key = "key_1"
		case 7:
			call.RequestState = json.RawMessage(`"forged"`)
		}
		return c, call
	}
	for i := range 500 {
		c, call := altered(i)
		if _, err := h.Call(t.Context(), c, call); core.CodeOf(err) != core.CodeApprovalPending && core.CodeOf(err) != core.CodeRateLimited {
			t.Fatalf("altered call %d: %v", i, err)
		}
	}
	if n := len(h.apps.Calls()); n != 0 {
		t.Fatalf("%d altered calls were made", n)
	}
	// The same JSON value in another form is the same call.
	if err := h.run(t, alice, "files__delete", `{ "n":1, "path":"\u002fa" }`); err != nil || len(h.apps.Calls()) != 1 {
		t.Fatalf("the approved call: %v, %d calls", err, len(h.apps.Calls()))
	}
	for i := range 500 {
		if err := h.run(t, alice, "files__delete", `{"path":"/a","n":1}`); core.CodeOf(err) != core.CodeApprovalPending {
			t.Fatalf("replay %d: %v", i, err)
		}
	}
	if n := len(h.apps.Calls()); n != 1 {
		t.Errorf("%d calls were made, want 1", n)
	}
}

// A JSON decoder reads all halves of characters as U+FFFD; an app may make different file names of them.
func TestAnApprovalIsForNoOtherHalvesOfCharacters(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	for _, approved := range []string{`{"path":"caf\ufffd"}`, `{"path":"caf\udce9"}`} {
		_ = h.run(t, alice, "files__delete", approved)
		if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), true); err != nil {
			t.Fatal(err)
		}
		if err := h.run(t, alice, "files__delete", `{"path":"caf\ud800"}`); core.CodeOf(err) != core.CodeApprovalPending || len(h.apps.Calls()) != 0 {
			t.Errorf("%s was approved, another call: %v, %d calls", approved, err, len(h.apps.Calls()))
		}
		if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.run(t, alice, "files__delete", `{"path":"caf\uDCE9"}`); err != nil || len(h.apps.Calls()) != 1 {
		t.Errorf("the approved call: %v, %d calls", err, len(h.apps.Calls()))
	}
}

func TestOneApprovalLetsOneOfManyCallsThrough(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	_ = h.run(t, alice, "files__delete", `{}`)
	if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), true); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 32 {
		calls.Go(func() { _ = h.run(t, alice, "files__delete", `{}`) })
	}
	calls.Wait()
	if n := len(h.apps.Calls()); n != 1 {
		t.Errorf("%d calls were made", n)
	}
}

func TestAToolThatChangedWhileItsCallWaitedIsNotCalled(t *testing.T) {
	h := newHeld(t, 10*time.Second)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	done := make(chan error, 1)
	go func() { done <- h.run(t, alice, "files__delete", `{}`) }()
	id := h.pendingID(t, admin)
	h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{Tools: []core.Tool{tool("files", "delete", `{"name":"delete","description":"other"}`)}})
	if _, err := h.approvals.Decide(t.Context(), admin, id, true); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the call", done); core.CodeOf(err) != core.CodeApprovalRefused || len(h.apps.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(h.apps.Calls()))
	}
}

func TestACallerThatLeavesMakesNoCall(t *testing.T) {
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := h.Call(ctx, alice, tools.Call{Name: "files__delete"})
		done <- err
	}()
	id := h.pendingID(t, admin)
	leave()
	if err, _ := testkit.Receive(t, "the call", done); err == nil {
		t.Error("it has an answer")
	}
	if _, err := h.approvals.Decide(t.Context(), admin, id, true); err != nil || len(h.apps.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(h.apps.Calls()))
	}
}
