package login

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAUsersSecondKeyCannotApproveACallOfTheFirst(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := harness.Serve(t, harness.Flags("--sample"),
		harness.Config(harness.OIDCAuth(p.Issuer, "admins: [subject:alice, subject:bob]")+"tools: {approve: [sample__greet], approvalWaitSeconds: 0}\n"))
	workspace := "X-Workspace-Id: " + harness.Workspace
	key := func(subject string) string {
		a := s.Do(t, "POST", "/v1/keys", map[string]any{"name": "k", "role": "admin"}, "Authorization: Bearer "+p.Token(map[string]any{"sub": subject}), workspace)
		text, _ := a.Object(t)["key"].(string)
		if text == "" {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return "Authorization: Bearer " + text
	}
	first, second, other := key("alice"), key("alice"), key("bob")
	token := "Authorization: Bearer " + p.Token(map[string]any{"sub": "alice"})
	s.WaitForStatus(t, "sample", "running", token, workspace)
	for i, asked := range []string{first, token} {
		call := map[string]any{"server": "sample", "tool": "greet", "arguments": map[string]any{"name": string(rune('A' + i))}}
		if a := s.Do(t, "POST", "/v1/tools/call", call, asked, workspace); a.Status != 409 {
			t.Fatalf("the call does not wait for approval: %d %s", a.Status, a.Body)
		}
		list := s.Do(t, "GET", "/v1/approvals", nil, token, workspace).Object(t)["approvals"].([]any)
		id := list[0].(map[string]any)["id"].(string)
		decide := func(credentials string) int {
			return s.Do(t, "POST", "/v1/approvals/"+id, map[string]any{"decision": "approve"}, credentials, workspace).Status
		}
		for _, own := range []string{first, second} {
			if status := decide(own); status != 403 {
				t.Errorf("call %d: a decision with another key of the same person: %d", i, status)
			}
		}
		if status := decide(other); status != 200 {
			t.Errorf("call %d: a decision with another admin's key: %d", i, status)
		}
	}
}

// nextOf waits for an event with this name and returns its data.
func nextOf(t *testing.T, l *harness.EventReader, name string) (data map[string]any) {
	t.Helper()
	for {
		if found, raw, _ := strings.Cut(l.Next(t), " "); found == name {
			if err := json.Unmarshal([]byte(raw), &data); err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
}

func TestARefusedCallReturnsTheReason(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("tools: {approve: [sample__greet], approvalWaitSeconds: 60}\n"))
	s.WaitForStatus(t, "sample", "running")
	l, c := s.Listen(t), s.OpenSession(t)
	const digits = `9007199254740993`
	answered := make(chan string, 1)
	go func() {
		_, _, body, _ := c.Post(t.Context(), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sample__greet","arguments":{"name":"A","n":`+digits+`}}}`)
		answered <- string(body)
	}()
	id, _ := nextOf(t, l, "approval.requested")["id"].(string)
	run := func(args ...string) string {
		output, status := harness.Command(t, []string{"ROPEWALK_SERVER=" + s.URL}, args...)
		if status != 0 {
			t.Errorf("%q: %d %s", args, status, output)
		}
		return output
	}
	shows := func(where, output string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(output, want) {
				t.Errorf("%s does not contain %s: %s", where, want, output)
			}
		}
	}
	shows("the list", s.Do(t, "GET", "/v1/approvals?state=pending", nil).Body, id, digits)
	shows("the command", run("approval", "list"), id, digits)
	shows("its JSON", run("approval", "list", "--json"), id, digits)
	shows("the decision", run("approval", "refuse", id, "--reason", "Greet them by hand."), "refused")
	if data := nextOf(t, l, "approval.decided"); data["decision"] != "refused" || data["reason"] != nil {
		t.Errorf("the event reaches the whole workspace, but contains %v", data)
	}
	answer, _ := testkit.Receive(t, "the answer", answered)
	shows("the result", answer, `"isError":true`, "Greet them by hand.")
	shows("the history", s.Do(t, "GET", "/v1/approvals?state=decided&limit=1", nil).Body, id, digits, `"state":"refused"`, `"reason":"Greet them by hand."`, `"decider":{`, `"decidedAt":"`)
	shows("the command", run("approval", "list", "--decided"), id, digits, "Greet them by hand.")
	if late := s.Do(t, "POST", "/v1/approvals/"+id, map[string]any{"decision": "approve"}); late.Status != 409 || !strings.Contains(late.Body, "already refused it") {
		t.Errorf("a second decision: %d %s", late.Status, late.Body)
	}
}

func TestADisconnectCancelsACallsApproval(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("tools: {approve: [sample__greet], approvalWaitSeconds: 60}\n"))
	s.WaitForStatus(t, "sample", "running")
	l := s.Listen(t)
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/tools/call", strings.NewReader(`{"tool":"sample__greet","arguments":{"name":"A"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	left := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		left <- err
	}()
	id, _ := nextOf(t, l, "approval.requested")["id"].(string)
	disconnect()
	if err, _ := testkit.Receive(t, "the client", left); err == nil {
		t.Fatal("the call was answered")
	}
	if data := nextOf(t, l, "approval.ended"); data["id"] != id || data["state"] != "cancelled" {
		t.Errorf("the event contains %v", data)
	}
	if late := s.Do(t, "POST", "/v1/approvals/"+id, map[string]any{"decision": "approve"}); late.Status != 409 || !strings.Contains(late.Body, "disconnected") || !strings.Contains(late.Body, `"state":"cancelled"`) {
		t.Errorf("a late decision: %d %s", late.Status, late.Body)
	}
	if pending := s.Do(t, "GET", "/v1/approvals?state=pending", nil); strings.Contains(pending.Body, id) {
		t.Errorf("the call is still waiting: %s", pending.Body)
	}
}

func TestTheExpiryOfAnApprovalIsAnnounced(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config("tools: {approve: [sample__greet], approvalWaitSeconds: 0, approvalExpirySeconds: 10}\n"))
	s.WaitForStatus(t, "sample", "running")
	l := s.Listen(t)
	if a := s.Do(t, "POST", "/v1/tools/call", map[string]any{"tool": "sample__greet", "arguments": map[string]any{"name": "A"}}); a.Status != 409 {
		t.Fatalf("the call does not wait for approval: %d %s", a.Status, a.Body)
	}
	id, _ := nextOf(t, l, "approval.requested")["id"].(string)
	if data := nextOf(t, l, "approval.ended"); data["id"] != id || data["state"] != "expired" {
		t.Errorf("the event contains %v", data)
	}
	if late := s.Do(t, "POST", "/v1/approvals/"+id, map[string]any{"decision": "approve"}); late.Status != 409 || !strings.Contains(late.Body, "expired") {
		t.Errorf("a late decision: %d %s", late.Status, late.Body)
	}
}

func TestAnAlwaysAllowedToolNeedsNoApprovalAfterARestart(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := harness.Serve(t, harness.Flags("--sample"),
		harness.Config(harness.OIDCAuth(p.Issuer, "admins: [subject:alice, subject:bob]")+"tools: {approve: [sample__greet], approvalWaitSeconds: 0}\n"))
	workspace := "X-Workspace-Id: " + harness.Workspace
	as := func(subject string) []string {
		return []string{"Authorization: Bearer " + p.Token(map[string]any{"sub": subject}), workspace}
	}
	alice, bob := as("alice"), as("bob")
	s.WaitForStatus(t, "sample", "running", alice...)
	call := func(name string, want int) {
		t.Helper()
		a := s.Do(t, "POST", "/v1/tools/call", map[string]any{"tool": "sample__greet", "arguments": map[string]any{"name": name}}, alice...)
		if a.Status != want {
			t.Fatalf("%d %s, want %d", a.Status, a.Body, want)
		}
	}
	call("A", 409)
	pending := func(who []string) map[string]any {
		t.Helper()
		return s.Do(t, "GET", "/v1/approvals?state=pending", nil, who...).Object(t)["approvals"].([]any)[0].(map[string]any)
	}
	path := "/v1/approvals/" + pending(bob)["id"].(string)
	if pending(alice)["mayAlways"] != nil || pending(bob)["mayAlways"] != true {
		t.Errorf("mayAlways: %v for the caller, %v for another admin", pending(alice)["mayAlways"], pending(bob)["mayAlways"])
	}
	if a := s.Do(t, "POST", path, map[string]any{"decision": "always"}, alice...); a.Status != 403 {
		t.Errorf("the caller always allowed its own call: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "POST", path, map[string]any{"decision": "always"}, bob...); a.Status != 200 || !strings.Contains(a.Body, `"always":true`) {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	call("B", 200)
	s.Stop()
	s.Start()
	s.WaitForStatus(t, "sample", "running", alice...)
	call("C", 200)
	standing := s.Do(t, "GET", "/v1/approvals/always", nil, alice...).Object(t)["always"].([]any)[0].(map[string]any)
	if standing["tool"] != "sample__greet" || standing["grantedBy"].(map[string]any)["id"] == "" {
		t.Errorf("%v", standing)
	}
	if a := s.Do(t, "DELETE", "/v1/approvals/always/"+standing["id"].(string), nil, alice...); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	call("D", 409)
}

// A call may wait a long time for approval. If its caller loses access in the meantime, the call is not made.
func TestACallWhoseKeyIsRevokedWhileItWaitsIsNotMade(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := harness.Serve(t, harness.Flags("--sample"),
		harness.Config(harness.OIDCAuth(p.Issuer, "admins: [subject:alice, subject:bob]")+"tools: {approve: [sample__greet], approvalWaitSeconds: 60}\n"))
	workspace := "X-Workspace-Id: " + harness.Workspace
	alice := "Authorization: Bearer " + p.Token(map[string]any{"sub": "alice"})
	bob := "Authorization: Bearer " + p.Token(map[string]any{"sub": "bob"})
	made := s.Do(t, "POST", "/v1/keys", map[string]any{"name": "k"}, alice, workspace).Object(t)
	key, id := made["key"].(string), made["id"].(string)
	s.WaitForStatus(t, "sample", "running", alice, workspace)
	answered := make(chan harness.Response, 1)
	go func() {
		answered <- s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "sample", "tool": "greet", "arguments": map[string]any{"name": "A"}}, "Authorization: Bearer "+key, workspace)
	}()
	state := func() (id, state string) {
		list, _ := s.Do(t, "GET", "/v1/approvals", nil, bob, workspace).Object(t)["approvals"].([]any)
		if len(list) == 0 {
			return "", ""
		}
		one := list[0].(map[string]any)
		return one["id"].(string), one["state"].(string)
	}
	testkit.Eventually(t, "the call waits", func() bool { _, is := state(); return is == "pending" })
	if a := s.Do(t, "DELETE", "/v1/keys/"+id, nil, alice, workspace); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a, _ := testkit.Receive(t, "the answer", answered); a.Status != 401 {
		t.Errorf("the call ended with %d %s", a.Status, a.Body)
	}
	var approval, is string
	testkit.Eventually(t, "the approval ends", func() bool { approval, is = state(); return is != "pending" })
	if late := s.Do(t, "POST", "/v1/approvals/"+approval, map[string]any{"decision": "approve"}, bob, workspace); is != "cancelled" || late.Status != 409 {
		t.Errorf("the approval is %s; a late decision: %d %s", is, late.Status, late.Body)
	}
}
