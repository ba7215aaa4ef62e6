package apps

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestAStatelessClientResumesItsCallOnAnotherServer(t *testing.T) {
	h := newHub()
	a, _ := realManager(t, t.TempDir(), nil, h.joins())
	b, _ := realManager(t, t.TempDir(), nil, h.joins())
	open(t, a)
	open(t, b)
	install(t, a, source.Request{Path: bundleDir(t, "@test/notes", modeOld, nil)})
	runs(t, b, "notes")
	ask := func() asking {
		t.Helper()
		raw, err := statelessAsk(t.Context(), a, "alice", "what word?", "")
		return firstQuestion(t, raw, err)
	}
	q := ask()
	if _, err := answered(t.Context(), b, "mallory", q, "stolen"); !isCode(err, codeInvalidParams) {
		t.Errorf("another user resumed the call: %v", err)
	}
	raw, err := answered(t.Context(), b, "alice", q, "red")
	if err != nil || !strings.Contains(string(raw), `"text":"red `) {
		t.Errorf("the result is %s (%v)", raw, err)
	}
	for name, y := range map[string]*Manager{"there": a, "here": b} {
		if _, err := answered(t.Context(), y, "alice", q, "blue"); !isCode(err, codeInvalidParams) {
			t.Errorf("it could be answered twice, the last time with %s: %v", name, err)
		}
	}
	expect(t, "suspended calls", suspendedCallsOf(a)+suspendedCallsOf(b), 0)

	q = ask()
	if _, err := a.Uninstall(t.Context(), ws, "notes"); err != nil {
		t.Fatal(err)
	}
	if raw, err := answered(t.Context(), b, "alice", q, "red"); err == nil {
		t.Errorf("a call to an app that is gone: %s", raw)
	}
}

func TestACallSuspendedOnAServerThatIsGoneCannotBeResumed(t *testing.T) {
	h := newHub()
	a, _ := realManager(t, t.TempDir(), nil, h.joins())
	b, _ := realManager(t, t.TempDir(), nil, h.joins())
	open(t, a)
	open(t, b)
	install(t, a, source.Request{Path: bundleDir(t, "@test/notes", modeOld, nil)})
	runs(t, b, "notes")
	raw, err := statelessAsk(t.Context(), a, "alice", "what word?", "")
	q := firstQuestion(t, raw, err)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{q.RequestState, "ropewalk.suspended.NOSUCHSERVER.X", "ropewalk.suspended.X", "ropewalk.suspended."} {
		q.RequestState = state
		if _, err := answered(t.Context(), b, "alice", q, "red"); !isCode(err, codeInvalidParams) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestAnErrorFromAPeerServerKeepsItsCode(t *testing.T) {
	y := installNotes(t, modeOld, nil)
	for question, want := range map[string]string{
		`{`: `"code":"internal_error"`,
		`{"workspace":"ws_default","app":"none"}`:                                                 `"code":"not_found"`,
		`{"workspace":"ws_default","app":"notes","params":{}}`:                                    `"rpc":{"code":-32602`,
		`{"workspace":"ws_default","app":"notes","params":{"requestState":"ropewalk.suspended"}}`: `"rpc":{"code":-32602`,
	} {
		if got := y.answerPeer(t.Context(), json.RawMessage(question)); !strings.Contains(string(got), want) {
			t.Errorf("%s is answered with %s, want %s", question, got, want)
		}
	}
}
