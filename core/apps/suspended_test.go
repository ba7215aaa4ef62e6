package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	codeInvalidParams    = -32602
	maxSuspendedPerOwner = 16
)

// asking is a result that asks for input.
type asking struct {
	ResultType    string
	RequestState  string
	InputRequests map[string]struct {
		Method string
		Params struct{ Message string }
	}
}

// statelessAsk makes the test bundle ask the question in text, as a client of the stateless revision.
func statelessAsk(ctx context.Context, y *Manager, owner, text, more string) (json.RawMessage, error) {
	params := fmt.Sprintf(`{"name":"ask","arguments":{"text":%q}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`, text, more)
	return y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(params)}, Client: interact.NewClient("", true, nil), Owner: owner})
}

// answered resumes a call that asked a question, on behalf of owner.
func answered(ctx context.Context, y *Manager, owner string, a asking, word string) (json.RawMessage, error) {
	responses := map[string]any{}
	for name := range a.InputRequests {
		responses[name] = map[string]any{"action": "accept", "content": map[string]any{"word": word}}
	}
	raw, _ := json.Marshal(responses)
	return statelessAsk(ctx, y, owner, "again", fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, a.RequestState, raw))
}

func firstQuestion(t *testing.T, raw json.RawMessage, err error) (a asking) {
	t.Helper()
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	if err != nil || a.ResultType != "input_required" || len(a.InputRequests) != 1 || a.RequestState == "" {
		t.Fatalf("got %s (%v)", raw, err)
	}
	return a
}

func TestABundleOfAnOlderRevisionAsksAStatelessClientThroughAResult(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	for range 2 { // on the shared instance, then on its own instance
		raw, err := statelessAsk(t.Context(), y, "alice", "what word?", "")
		a := firstQuestion(t, raw, err)
		for _, q := range a.InputRequests {
			expect(t, "the question", q.Method+" "+q.Params.Message, "elicitation/create what word?")
		}
		if _, err := answered(t.Context(), y, "mallory", a, "stolen"); !isCode(err, codeInvalidParams) {
			t.Errorf("another user resumed the call: %v", err)
		}
		raw, err = answered(t.Context(), y, "alice", a, "red")
		if err != nil || !strings.Contains(string(raw), `"text":"red `) {
			t.Errorf("the result is %s (%v)", raw, err)
		}
		if _, err := answered(t.Context(), y, "alice", a, "blue"); !isCode(err, codeInvalidParams) {
			t.Errorf("it was answered twice: %v", err)
		}
	}
}

// When an app continues after a question, its progress goes to the request that is now waiting, with the token of that
// request.
func TestProgressOfASuspendedCallReachesTheRequestThatResumesIt(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	for _, c := range []struct{ name, token, want string }{
		{"another token", `,"progressToken":"second"`, `[notifications/progress {"progressToken":"second","message":"heard","progress":1}]`},
		{"no token", ``, `[]`},
	} {
		call := func(more, meta string, notify func(rpc.Notification)) (json.RawMessage, error) {
			params := `{"name":"ask","arguments":{"text":"?"}` + more + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}` + meta + `}}`
			return y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(params), Notify: notify}, Client: interact.NewClient("", true, nil), Owner: "alice"})
		}
		raw, err := call("", `,"progressToken":"first"`, func(n rpc.Notification) { t.Errorf("the first request received %s", n.Params) })
		a := firstQuestion(t, raw, err)
		heard := []string{}
		for name := range a.InputRequests {
			raw, err = call(fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"word":"red"}}}`, a.RequestState, name), c.token,
				func(n rpc.Notification) { heard = append(heard, n.Method+" "+string(n.Params)) })
		}
		if err != nil || fmt.Sprint(heard) != c.want {
			t.Errorf("%s: %s (%v), and heard %v", c.name, raw, err, heard)
		}
	}
}

// The error with which a 2025-11-25 app sends a user to a page becomes a question in the newer revision.
func TestAURLElicitationIsRequestedInTheResult(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	for _, c := range []struct {
		name   string
		client *interact.Client
		can    string
		code   int
		want   string
	}{
		{"a client of the older revisions", interact.NewClient("s", false, nil), `{}`, -32042, `{"elicitations":[{"mode":"url","elicitationId":"7","url":"https://a.test","message":"here"}]}`},
		{"a client of the newer revision", interact.NewClient("", true, nil), `{"elicitation":{"form":{},"url":{}}}`, 0,
			`{"inputRequests":{"page1":{"method":"elicitation/create","params":{"mode":"url","elicitationId":"7","url":"https://a.test","message":"here"}}},"resultType":"input_required"}`},
		{"a client that cannot open URLs", interact.NewClient("", true, nil), `{"elicitation":{}}`, -32021, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`},
	} {
		params := `{"name":"visit","arguments":{"text":""},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.can + `}}`
		result, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(params)}, Client: c.client, Owner: "alice"})
		if failure, ok := errors.AsType[*rpc.Error](err); ok {
			expect(t, c.name+": the code", failure.Code, c.code)
			result = failure.Data
		}
		expect(t, c.name, string(result), c.want)
	}
}

func suspendedCallsOf(y *Manager) int { return y.broker.SuspendedCalls() }

func isCode(err error, code int) bool {
	failure, ok := errors.AsType[*rpc.Error](err)
	return ok && failure.Code == code
}

func TestASuspendedCallIsResumedForItsOwnMethodAndTargetOnly(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	raw, err := statelessAsk(t.Context(), y, "alice", "?", "")
	a := firstQuestion(t, raw, err)
	other := fmt.Sprintf(`{"name":"echo","arguments":{"text":"?"},"requestState":%q,"inputResponses":{"q1":{"action":"accept","content":{"word":"red"}}}}`, a.RequestState)
	if raw, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(other)}, Client: interact.NewClient("", true, nil), Owner: "alice"}); !isCode(err, codeInvalidParams) {
		t.Errorf("another tool continued with it: %s (%v)", raw, err)
	}
	for _, answers := range []string{`{}`, `{"q1":5}`, `{"q1":null}`, `{"q1":[]}`, `{"q2":{}}`, `5`} {
		raw, err = statelessAsk(t.Context(), y, "alice", "?", fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, a.RequestState, answers))
		a = firstQuestion(t, raw, err) // asked again
	}
	if raw, err = answered(t.Context(), y, "alice", a, "red"); err != nil || !strings.Contains(string(raw), `"text":"red `) {
		t.Errorf("the result is %s (%v)", raw, err)
	}
}

func TestSuspendedCallsOfManyClientsAreKeptApart(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	raw, err := statelessAsk(t.Context(), y, "first", "so that it is known", "")
	if _, err := answered(t.Context(), y, "first", firstQuestion(t, raw, err), "x"); err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for i := range 12 {
		working.Go(func() {
			who := []string{"alice", "bob"}[i%2]
			nonce := fmt.Sprintf("%s-%d", who, i)
			raw, err := statelessAsk(t.Context(), y, who, nonce, "")
			var a asking
			if err != nil || json.Unmarshal(raw, &a) != nil || len(a.InputRequests) != 1 {
				t.Errorf("%s got %s (%v)", nonce, raw, err)
				return
			}
			for _, q := range a.InputRequests {
				expect(t, "the question of "+nonce, q.Params.Message, nonce)
			}
			raw, err = answered(t.Context(), y, who, a, nonce)
			if err != nil || !strings.Contains(string(raw), `"text":"`+nonce+" ") {
				t.Errorf("%s got %s (%v)", nonce, raw, err)
			}
		})
	}
	working.Wait()
}

func TestASuspendedCallEndsWhenItsClientDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryManager(t)
		call := &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`)}, Client: interact.NewClient("", true, nil), Owner: "alice"}
		raw, err := y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
		a := firstQuestion(t, raw, err)
		wait(t.Context(), 10*time.Minute+time.Second)
		synctest.Wait()
		expect(t, "suspended calls", suspendedCallsOf(y), 0)
		expect(t, "calls in flight", y.apps[ws]["notes"].dialog.Slots().Used(), 0)
		if _, err := answered(t.Context(), y, "alice", a, "late"); !isCode(err, codeInvalidParams) {
			t.Errorf("it continued: %v", err)
		}
		for range maxSuspendedPerOwner {
			if _, err := y.Call(t.Context(), ws, "notes", call.Again(call.Params, "")); err != nil {
				t.Fatal(err)
			}
		}
		_, err = y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
		expect(t, "one call too many", core.CodeOf(err), core.CodeUnavailable)
		call.Owner = "bob"
		if _, err = y.Call(t.Context(), ws, "notes", call.Again(call.Params, "")); err != nil {
			t.Errorf("another owner gets no slot: %v", err)
		}
		wait(t.Context(), time.Minute)
		call.Owner = "alice"
		raw, err = y.Call(t.Context(), ws, "notes", call.Again(call.Params, ""))
		firstQuestion(t, raw, err) // replaces one that its client has abandoned
		synctest.Wait()
		expect(t, "suspended calls of both", suspendedCallsOf(y), maxSuspendedPerOwner+1)
		expect(t, "calls in flight of both", y.apps[ws]["notes"].dialog.Slots().Used(), maxSuspendedPerOwner+1)
	})
}
