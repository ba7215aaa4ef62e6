package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

// endless is an audit log that can record starts but not ends.
type endless struct{ fakes.Audit }

func (e *endless) Record(ctx context.Context, r core.AuditRecord) error {
	if strings.HasSuffix(r.Action, ".ended") {
		return core.Errorf(core.CodeUnavailable, "cannot write to the audit log")
	}
	return e.Audit.Record(ctx, r)
}

func TestEveryRequestIsRecordedBeforeItStartsAndAfterItEnds(t *testing.T) {
	calc := []core.Tool{tool("calc", "add", `{"name":"add"}`)}
	arguments := json.RawMessage(`{"a":1}`)
	call := func(name string) func(*tools.Namespace) {
		return func(n *tools.Namespace) {
			_, _, _ = n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: name, Arguments: arguments})
		}
	}
	about := func(method func(*tools.Namespace, context.Context, core.Caller, tools.Request) (json.RawMessage, error), params string) func(*tools.Namespace) {
		return func(n *tools.Namespace) {
			_, _ = method(n, t.Context(), caller("ws_a", core.RoleMember), tools.Request{Params: json.RawMessage(params)})
		}
	}
	prompt := `{"name":"calc__ask","arguments":{"a":1}}`
	for _, c := range []struct {
		name, result string
		err          error
		do           func(*tools.Namespace)
		want         string
	}{
		{"a call", `{"content":[]}`, nil, call("calc__add"), `tools.call calc__add allowed {"a":1}; tools.call.ended calc__add ok`},
		{"a tool that fails", `{"isError":true}`, nil, call("calc__add"), `tools.call calc__add allowed {"a":1}; tools.call.ended calc__add tool_error`},
		{"a suspended call", `{"resultType":"input_required"}`, nil, call("calc__add"), `tools.call calc__add allowed {"a":1}; tools.call.ended calc__add input_required`},
		{"an error from the app", ``, &rpc.Error{Code: 1}, call("calc__add"), `tools.call calc__add allowed {"a":1}; tools.call.ended calc__add rpc_error`},
		{"an app that crashed", ``, core.Errorf(core.CodeUnavailable, "m"), call("calc__add"), `tools.call calc__add allowed {"a":1}; tools.call.ended calc__add unavailable`},
		{"a call that was cancelled", ``, context.Canceled, call("calc__add"), `tools.call calc__add allowed {"a":1}; tools.call.ended calc__add cancelled`},
		{"no such tool", ``, nil, call("calc__none"), `tools.call calc__none tool_not_found {"a":1}`},
		{"an app that is starting", `{"content":[]}`, nil, call("late__add"), `tools.call late__add allowed {"a":1}; tools.call.ended late__add ok`},
		{"a system tool", ``, nil, call("system__open"), `tools.call system__open allowed {"a":1}; tools.call.ended system__open ok`},
		{"a system tool that is turned off", ``, nil, call("system__off"), `tools.call system__off feature_disabled {"a":1}`},
		{"a system tool for admins only", ``, nil, call("system__admins"), `tools.call system__admins forbidden {"a":1}`},
		{"a system tool that refuses", ``, nil, call("system__checks"), `tools.call system__checks forbidden {"a":1}`},
		{"no such system tool", ``, nil, call("system__none"), `tools.call system__none tool_not_found {"a":1}`},
		{"a prompt", `{"messages":[]}`, nil, about((*tools.Namespace).GetPrompt, prompt), `prompts.get calc__ask allowed {"a":1}; prompts.get.ended calc__ask ok`},
		{"no such prompt", ``, nil, about((*tools.Namespace).GetPrompt, `{"name":"calc__none"}`), `prompts.get calc__none not_found`},
		{"a resource", `{"resultType":"input_required"}`, nil, about((*tools.Namespace).ReadResource, `{"uri":"calc://a"}`), `resources.read calc://a allowed; resources.read.ended calc://a input_required`},
		{"a completion", `{}`, nil, about((*tools.Namespace).Complete, `{"ref":{"type":"ref/prompt","name":"calc__ask"},"argument":{"name":"a","value":"b"}}`),
			`completion.complete calc__ask allowed {"name":"a","value":"b"}; completion.complete.ended calc__ask ok`},
		{"a view", ``, nil, func(n *tools.Namespace) {
			_, _ = n.ReadView(t.Context(), caller("ws_a", core.RoleMember), "calc", "ui://calc/x")
		},
			`resources.read ui://calc/calc/x allowed; resources.read.ended ui://calc/calc/x resource_not_found`},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := &fakeApps{result: c.result, err: c.err, late: map[string][]core.Tool{"late": {tool("late", "add", `{"name":"add"}`)}}}
			y.SetOffer("ws_a", &core.Offer{Tools: calc, Prompts: []core.Prompt{{Server: "calc", Name: "ask", Raw: json.RawMessage(`{"name":"ask"}`)}}, Resources: []core.Resource{{Server: "calc", URI: "calc://a", Raw: json.RawMessage(`{"uri":"calc://a"}`)}}})
			log := &fakes.Audit{}
			n := tools.New(tools.Options{Apps: y, Events: &events{}, Logger: hclog.NewNullLogger(), Audit: log, Features: config.Features{config.FlagBundleManagement: false}})
			off, admins, checks := system("off", false), system("admins", true), system("checks", false)
			off.Flags = []string{config.FlagBundleManagement}
			checks.Permit = func(core.Caller, json.RawMessage) error { return core.Errorf(core.CodeForbidden, "m") }
			n.Add(system("open", false), off, admins, checks)
			c.do(n)
			var all []string
			records := log.Take()
			for _, r := range records {
				if r.CallID != records[0].CallID || (r.CallID == "") != (len(records) == 1) {
					t.Errorf("the records belong to the calls %q and %q", records[0].CallID, r.CallID)
				}
				all = append(all, strings.TrimSpace(r.Action+" "+r.Target+" "+r.Outcome+" "+string(r.Arguments)))
				if ended := strings.HasSuffix(r.Action, ".ended"); r.Workspace != "ws_a" || ended && r.Arguments != nil {
					t.Errorf("recorded %+v", r)
				}
			}
			if got := strings.Join(all, "; "); got != c.want {
				t.Errorf("recorded %q, want %q", got, c.want)
			}
		})
	}
}

func TestACallIsNotMadeIfItsStartCannotBeRecordedButIsAnsweredIfItsEndCannot(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`, tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add"}`)}}}
	log := &endless{}
	log.Fail(core.Errorf(core.CodeUnavailable, "cannot write to the audit log"))
	n := tools.New(tools.Options{Apps: y, Events: &events{}, Logger: hclog.NewNullLogger(), Audit: log})
	if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__add"}); core.CodeOf(err) != core.CodeUnavailable || len(y.Calls()) != 0 {
		t.Errorf("a call that is not recorded: %v, %d calls reached the app", err, len(y.Calls()))
	}
	log.Fail(nil)
	if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__add"}); err != nil {
		t.Errorf("a call whose end is not recorded: %v", err)
	}
}
