package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

type auditor struct {
	mu      sync.Mutex
	records []core.AuditRecord
	err     error
}

func (a *auditor) Record(_ context.Context, r core.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.records = append(a.records, r)
	return a.err
}

func TestEveryCallIsRecordedBeforeItIsMade(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`, tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add"}`)}}}
	log := &auditor{}
	n := tools.New(tools.Options{Apps: y, Events: &events{}, Logger: hclog.NewNullLogger(), Audit: log})
	for _, name := range []string{"calc__add", "calc__none"} {
		_, _ = n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: name, Arguments: json.RawMessage(`{"a":1}`)})
	}
	var got []string
	for _, r := range log.records {
		got = append(got, r.Action+" "+r.Target+" "+r.Outcome+" "+string(r.Arguments)+" "+r.Workspace)
	}
	want := `tools.call calc__add allowed {"a":1} ws_a; tools.call calc__none tool_not_found {"a":1} ws_a`
	if strings.Join(got, "; ") != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
	log.err = core.Errorf(core.CodeUnavailable, "the audit log cannot be written")
	before := len(y.Calls())
	if _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__add"}); core.CodeOf(err) != core.CodeUnavailable || len(y.Calls()) != before {
		t.Errorf("a call that is not recorded: %v, %d calls reached the app", err, len(y.Calls())-before)
	}
}
