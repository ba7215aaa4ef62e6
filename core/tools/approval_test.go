package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/core/trust"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

// held is a namespace in which the tool files__delete needs an approval and files__read does not.
type held struct {
	*tools.Namespace
	apps      *fakeApps
	records   *store.Store
	access    *rights
	views     *view.Registry
	approvals *trust.Approvals
	events    *events
	audit     *fakes.Audit
}

func newHeld(t *testing.T, wait time.Duration) *held {
	t.Helper()
	return newHeldFor(t, wait, time.Minute)
}

func newHeldFor(t *testing.T, wait, expiry time.Duration) *held {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "ropewalk.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	h := &held{
		records: s, access: &rights{now: func(c core.Caller) (core.Caller, error) { return c, nil }}, views: views,
		apps: &fakeApps{result: `{"content":[]}`, tools: map[string][]core.Tool{core.DefaultWorkspaceID: {
			tool("files", "delete", `{"name":"delete","annotations":{"destructiveHint":true}}`), tool("files", "read", `{"name":"read"}`),
			tool("mail", "send", `{"name":"send"}`),
		}}},
		events: &events{}, audit: &fakes.Audit{},
	}
	h.approvals = trust.NewApprovals(trust.ApprovalOptions{
		Patterns: []string{"destructiveHint", "mail__*", "system__*"}, Wait: wait, Expiry: expiry, Records: s, Events: h.events, Logger: hclog.NewNullLogger(),
		Shows: func(c core.Caller, server string, names ...string) bool { return h.ShowsTool(c, server, names...) },
	})
	h.Namespace = tools.New(tools.Options{Access: h.access, Features: config.Features{}, Apps: h.apps, Events: h.events, Logger: hclog.NewNullLogger(), Audit: h.audit, Approvals: h.approvals, Views: views})
	return h
}

func (h *held) run(t *testing.T, c core.Caller, name, arguments string) error {
	t.Helper()
	_, _, err := h.Call(t.Context(), c, tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
	return err
}

// pendingID waits for a pending approval request and returns its id.
func (h *held) pendingID(t *testing.T, admin core.Caller) (id string) {
	t.Helper()
	testkit.Eventually(t, "a call that waits", func() bool {
		all, err := h.approvals.List(t.Context(), admin, core.ApprovalQuery{State: core.ApprovalPending})
		for _, a := range all.Approvals {
			id = a.ID
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
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	if err := h.run(t, alice, "files__read", `{}`); err != nil || len(h.apps.Calls()) != 1 {
		t.Fatalf("a tool that needs no approval: %v", err)
	}
	var seen []string
	done := make(chan error, 1)
	go func() {
		_, _, err := h.Call(t.Context(), alice, tools.Call{
			Name: "files__delete", Arguments: json.RawMessage(`{"path":"/a"}`), Meta: json.RawMessage(`{"progressToken":7}`),
			Notify: func(n rpc.Notification) { seen = append(seen, string(n.Params)) },
		})
		done <- err
	}()
	id := h.pendingID(t, admin)
	if len(h.apps.Calls()) != 1 {
		t.Error("the call was made before it was approved")
	}
	if _, err := h.approvals.Decide(t.Context(), alice, id, core.Decision{Approve: true}); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member approved it: %v", err)
	}
	if _, err := h.approvals.Decide(t.Context(), admin, id, core.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the call", done); err != nil || len(h.apps.Calls()) != 2 {
		t.Errorf("%v, %d calls", err, len(h.apps.Calls()))
	}
	if len(seen) == 0 || !strings.Contains(seen[0], `"progressToken":7`) || !strings.Contains(seen[0], id) {
		t.Errorf("progress: %q", seen)
	}
	if h.events.Count(core.EventApprovalRequested) != 1 || h.events.Count(core.EventApprovalDecided) != 1 {
		t.Errorf("events: %+v", h.events.All())
	}
	if recorded := h.audit.Take(); len(recorded) != 4 || recorded[2].Outcome != "allowed" || recorded[3].Action != "tools.call.ended" {
		t.Errorf("recorded: %+v", recorded)
	}
}

func TestARefusedCallIsNotMade(t *testing.T) {
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	done := make(chan error, 1)
	go func() { done <- h.run(t, alice, "mail__send", `{}`) }()
	if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{}); err != nil {
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
	if _, err := h.approvals.Decide(t.Context(), program, id, core.Decision{Approve: true}); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("with the call's own key: %v", err)
	}
	if _, err := h.approvals.Decide(t.Context(), admin, id, core.Decision{Approve: true}); err != nil {
		t.Error(err)
	}
	if err := h.run(t, admin, "files__delete", `{}`); core.CodeOf(err) != core.CodeApprovalPending {
		t.Errorf("a call by the person instead of the key: %v", err)
	}
}

// The test approves one call, makes it once, and then tries a thousand replays and altered calls.
func TestAThousandReplayedOrAlteredApprovalsExecuteNothing(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	approve := func() {
		t.Helper()
		if err := h.run(t, alice, "files__delete", `{"path":"/a","n":1}`); core.CodeOf(err) != core.CodeApprovalPending {
			t.Fatalf("%v", err)
		}
		if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{Approve: true}); err != nil {
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
		if _, _, err := h.Call(t.Context(), c, call); core.CodeOf(err) != core.CodeApprovalPending && core.CodeOf(err) != core.CodeRateLimited {
			t.Fatalf("altered call %d: %v", i, err)
		}
	}
	if n := len(h.apps.Calls()); n != 0 {
		t.Fatalf("%d altered calls reached the app", n)
	}
	// The same arguments, written as different JSON text, are the same call.
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

// A JSON decoder turns every unpaired surrogate into U+FFFD, but an app may turn them into different file names.
func TestAnApprovalDoesNotCoverOtherLoneSurrogates(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	for _, approved := range []string{`{"path":"caf\ufffd"}`, `{"path":"caf\udce9"}`} {
		_ = h.run(t, alice, "files__delete", approved)
		if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{Approve: true}); err != nil {
			t.Fatal(err)
		}
		if err := h.run(t, alice, "files__delete", `{"path":"caf\ud800"}`); core.CodeOf(err) != core.CodeApprovalPending || len(h.apps.Calls()) != 0 {
			t.Errorf("%s was approved, another call: %v, %d calls", approved, err, len(h.apps.Calls()))
		}
		if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.run(t, alice, "files__delete", `{"path":"caf\uDCE9"}`); err != nil || len(h.apps.Calls()) != 1 {
		t.Errorf("the approved call: %v, %d calls", err, len(h.apps.Calls()))
	}
}

// If a member occurs twice, the approver may see one value while the app uses the other.
func TestACallWithADuplicateMemberCannotBeApproved(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	_ = h.run(t, alice, "files__delete", `{"path":"/tmp"}`)
	if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{`{"path":"/etc","path":"/tmp"}`, `{"path":"/etc","p\u0061th":"/tmp"}`} {
		if err := h.run(t, alice, "files__delete", arguments); core.CodeOf(err) != core.CodeInvalidInput || len(h.apps.Calls()) != 0 {
			t.Errorf("%s: %v, %d calls", arguments, err, len(h.apps.Calls()))
		}
	}
}

func TestAnApprovalCoversTheExactDigitsOfANumber(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	_ = h.run(t, alice, "files__delete", `{"n":9007199254740993}`)
	page, err := h.approvals.List(t.Context(), admin, core.ApprovalQuery{})
	if err != nil || string(page.Approvals[0].Arguments) != `{"n":9007199254740993}` {
		t.Fatalf("%+v %v", page, err)
	}
	if _, err := h.approvals.Decide(t.Context(), admin, page.Approvals[0].ID, core.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if err := h.run(t, alice, "files__delete", `{"n":9007199254740992}`); core.CodeOf(err) != core.CodeApprovalPending || len(h.apps.Calls()) != 0 {
		t.Errorf("the number as JavaScript would round it: %v", err)
	}
	if err := h.run(t, alice, "files__delete", `{"n":9007199254740993}`); err != nil || len(h.apps.Calls()) != 1 {
		t.Errorf("the approved call: %v", err)
	}
}

func TestOneApprovalAdmitsOneOfManyCalls(t *testing.T) {
	h := newHeld(t, 0)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	_ = h.run(t, alice, "files__delete", `{}`)
	if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{Approve: true}); err != nil {
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

func TestARefusedCallReturnsTheReason(t *testing.T) {
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	admin.User.DisplayName = "The Boss"
	done := make(chan error, 1)
	go func() { done <- h.run(t, alice, "mail__send", `{}`) }()
	id := h.pendingID(t, admin)
	long := core.Decision{Reason: strings.Repeat("ä", core.MaxReason+1)}
	if _, err := h.approvals.Decide(t.Context(), admin, id, long); core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("a reason that is too long: %v", err)
	}
	if _, err := h.approvals.Decide(t.Context(), admin, id, core.Decision{Reason: " Send it to the list instead.\n"}); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the call", done); core.CodeOf(err) != core.CodeApprovalRefused || !strings.HasSuffix(err.Error(), ": Send it to the list instead.") {
		t.Errorf("%v", err)
	}
	for _, c := range []core.Caller{alice, admin} {
		page, err := h.approvals.List(t.Context(), c, core.ApprovalQuery{Decided: true})
		if err != nil || len(page.Approvals) != 1 || page.Approvals[0].Reason != "Send it to the list instead." || page.Approvals[0].DecidedBy.DisplayName != "The Boss" {
			t.Errorf("the history of %s: %+v %v", c.User.ID, page, err)
		}
	}
	if page, err := h.approvals.List(t.Context(), person("bob", core.RoleMember), core.ApprovalQuery{Decided: true}); err != nil || len(page.Approvals) != 0 {
		t.Errorf("the history of another member: %+v %v", page, err)
	}
}

func TestACallThatIsCancelledEndsItsApproval(t *testing.T) {
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	leave := func() (id string) {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, _, err := h.Call(ctx, alice, tools.Call{Name: "files__delete"})
			done <- err
		}()
		id = h.pendingID(t, admin)
		leave()
		if err, _ := testkit.Receive(t, "the call", done); err == nil {
			t.Error("a cancelled call should not be approved")
		}
		return id
	}
	id := leave()
	if n := h.events.Count(core.EventApprovalEnded); n != 1 {
		t.Errorf("%d events say that it ended", n)
	}
	page, err := h.approvals.List(t.Context(), admin, core.ApprovalQuery{})
	if err != nil || len(page.Approvals) != 1 || page.Approvals[0].State != core.ApprovalCancelled {
		t.Errorf("%+v %v", page, err)
	}
	_, err = h.approvals.Decide(t.Context(), admin, id, core.Decision{Approve: true})
	if core.CodeOf(err) != core.CodeAlreadyAnswered || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("a late decision: %v", err)
	}
	if again := leave(); again == id || len(h.apps.Calls()) != 0 {
		t.Errorf("the same call later: %s, %d calls", again, len(h.apps.Calls()))
	}
}

func TestACancelledCallLeavesItsApprovalToAnIdenticalCallThatStillWaits(t *testing.T) {
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	ctx, leave := context.WithCancel(t.Context())
	waits := func(ctx context.Context, done chan<- error) {
		waiting := make(chan struct{}, 1)
		go func() {
			_, _, err := h.Call(ctx, alice, tools.Call{
				Name: "files__delete", Meta: json.RawMessage(`{"progressToken":1}`),
				Notify: func(rpc.Notification) { waiting <- struct{}{} },
			})
			done <- err
		}()
		<-waiting
	}
	left, stays := make(chan error, 1), make(chan error, 1)
	waits(t.Context(), stays)
	waits(ctx, left)
	leave()
	if err, _ := testkit.Receive(t, "the cancelled call", left); err == nil {
		t.Error("a cancelled call should not be approved")
	}
	if _, err := h.approvals.Decide(t.Context(), admin, h.pendingID(t, admin), core.Decision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if err, _ := testkit.Receive(t, "the waiting call", stays); err != nil || len(h.apps.Calls()) != 1 || h.events.Count(core.EventApprovalRequested) != 1 {
		t.Errorf("%v, %d calls, %+v", err, len(h.apps.Calls()), h.events.All())
	}
}

func TestAnApprovalEndsWhenItExpires(t *testing.T) {
	h := newHeldFor(t, 0, time.Second)
	alice, admin := person("alice", core.RoleMember), person("boss", core.RoleAdmin)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.approvals.Run(ctx)
	}()
	defer func() { stop(); <-ended }()
	err := h.run(t, alice, "files__delete", `{}`)
	known, _ := errors.AsType[*core.Error](err)
	if core.CodeOf(err) != core.CodeApprovalPending {
		t.Fatalf("%v", err)
	}
	testkit.Eventually(t, "the approval has ended", func() bool { return h.events.Count(core.EventApprovalEnded) == 1 })
	_, err = h.approvals.Decide(t.Context(), admin, known.Details.(map[string]any)["approval"].(string), core.Decision{Approve: true})
	if core.CodeOf(err) != core.CodeAlreadyAnswered || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a late decision: %v", err)
	}
}

func TestAnAdminOtherThanTheCallerMayAllowAllCallsToAToolUntilItChanges(t *testing.T) {
	h := newHeld(t, time.Minute)
	alice, admin := person("alice", core.RoleAdmin), person("boss", core.RoleAdmin)
	always := core.Decision{Approve: true, Always: true}
	waits := func(c core.Caller, name, arguments string) (id string, done chan error) {
		t.Helper()
		done = make(chan error, 1)
		before := h.events.Count(core.EventApprovalRequested)
		go func() { done <- h.run(t, c, name, arguments) }()
		testkit.Eventually(t, "the request", func() bool { return h.events.Count(core.EventApprovalRequested) > before })
		return h.pendingID(t, admin), done
	}
	refuse := func(id string, done chan error) {
		t.Helper()
		if _, err := h.approvals.Decide(t.Context(), admin, id, core.Decision{}); err != nil {
			t.Fatal(err)
		}
		testkit.Receive(t, "the refused call", done)
	}

	id, done := waits(alice, "files__delete", `{}`)
	if _, err := h.approvals.Decide(t.Context(), admin, id, always); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a tool with destructiveHint: %v", err)
	}
	refuse(id, done)

	id, done = waits(alice, "mail__send", `{"n":1}`)
	if _, err := h.approvals.Decide(t.Context(), alice, id, always); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("by the person who asked: %v", err)
	}
	if _, err := h.approvals.Decide(t.Context(), person("carol", core.RoleMember), id, always); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member: %v", err)
	}
	_, other := waits(person("bob", core.RoleMember), "mail__send", `{"n":2}`)
	if _, err := h.approvals.Decide(t.Context(), admin, id, always); err != nil {
		t.Fatal(err)
	}
	for _, waiting := range []chan error{done, other} {
		if err, _ := testkit.Receive(t, "a call that waited", waiting); err != nil {
			t.Error(err)
		}
	}
	if err := h.run(t, person("bob", core.RoleMember), "mail__send", `{"n":3}`); err != nil || len(h.apps.Calls()) != 3 {
		t.Errorf("a later call: %v, %d calls", err, len(h.apps.Calls()))
	}

	h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{Tools: []core.Tool{tool("mail", "send", `{"name":"send","description":"other"}`)}})
	id, done = waits(alice, "mail__send", `{"n":4}`)
	refuse(id, done)
	h.apps.SetOffer(core.DefaultWorkspaceID, &core.Offer{Tools: []core.Tool{tool("mail", "send", `{"name":"send"}`)}})
	if err := h.run(t, alice, "mail__send", `{"n":5}`); err != nil {
		t.Errorf("the definition that was allowed: %v", err)
	}

	if _, err := h.approvals.Standing(t.Context(), person("carol", core.RoleMember)); core.CodeOf(err) != core.CodeForbidden {
		t.Errorf("a member lists them: %v", err)
	}
	all, err := h.approvals.Standing(t.Context(), admin)
	if err != nil || len(all) != 1 || all[0].Tool != "mail__send" || all[0].By.ID != "boss" {
		t.Fatalf("%+v %v", all, err)
	}
	if _, err := h.views.Set(t.Context(), core.DefaultWorkspaceID, core.View{Name: "v", Default: core.ViewDenies, Include: []core.ToolRule{{App: "files"}}}); err != nil {
		t.Fatal(err)
	}
	narrow := alice
	narrow.View = "v"
	if seen, err := h.approvals.Standing(t.Context(), narrow); err != nil || len(seen) != 0 {
		t.Errorf("a caller whose view hides the tool sees %+v (%v)", seen, err)
	}
	if _, err := h.approvals.Withdraw(t.Context(), narrow, all[0].ID); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("withdrawn by a caller whose view hides the tool: %v", err)
	}
	if _, err := h.approvals.Withdraw(t.Context(), alice, all[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.approvals.Withdraw(t.Context(), alice, all[0].ID); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("withdrawn twice: %v", err)
	}
	id, done = waits(alice, "mail__send", `{"n":6}`)
	if page, err := h.approvals.List(t.Context(), narrow, core.ApprovalQuery{State: core.ApprovalPending}); err != nil || len(page.Approvals) != 0 {
		t.Errorf("a caller whose view hides the tool sees %+v (%v)", page.Approvals, err)
	}
	if _, err := h.approvals.Decide(t.Context(), narrow, id, core.Decision{}); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("decided on by a caller whose view hides the tool: %v", err)
	}
	refuse(id, done)
	if h.events.Count(core.EventApprovalWithdrawn) != 1 {
		t.Errorf("events: %+v", h.events.All())
	}
}
