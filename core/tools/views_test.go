package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

// noViews is an empty store of views.
type noViews struct{}

func (noViews) Views(context.Context) (map[string][]core.View, error) { return nil, nil }
func (noViews) PutView(context.Context, string, core.View) error      { return nil }
func (noViews) DeleteView(context.Context, string, string) error      { return nil }

// narrowed is a namespace with views, together with its parts.
type narrowed struct {
	*tools.Namespace
	apps  *fakeApps
	views *view.Registry
	audit *fakes.Audit
}

func newNarrowed(t *testing.T, definitions ...string) *narrowed {
	t.Helper()
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		setView(t, views, definition)
	}
	n := &narrowed{apps: &fakeApps{result: `{"content":[]}`, late: map[string][]core.Tool{"down": nil}}, views: views, audit: &fakes.Audit{}}
	n.apps.SetOffer("ws_a", &core.Offer{
		Tools: []core.Tool{
			tool("calc", "add", `{"name":"add","description":"Adds","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
			tool("calc", "reset", `{"name":"reset","inputSchema":{"type":"object"}}`), tool("files", "read", `{"name":"read","inputSchema":{"type":"object"}}`),
		},
		Prompts:   []core.Prompt{{Server: "files", Name: "p", Raw: json.RawMessage(`{"name":"p"}`)}},
		Resources: []core.Resource{{Server: "files", URI: "f://a", Raw: json.RawMessage(`{"uri":"f://a"}`)}},
		Templates: []core.ResourceTemplate{{Server: "files", Template: "f://{x}", Raw: json.RawMessage(`{"uriTemplate":"f://{x}"}`)}},
		Held:      []core.HeldTool{{Server: "files", Name: "held", Reason: "it changed"}},
	})
	n.Namespace = tools.New(tools.Options{Apps: n.apps, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Audit: n.audit, Views: views})
	n.Add(system("open", false), n.SearchTools(), n.CallTool())
	return n
}

func setView(t *testing.T, views *view.Registry, definition string) {
	t.Helper()
	var d core.View
	if err := json.Unmarshal([]byte(definition), &d); err != nil {
		t.Fatal(err)
	}
	if _, err := views.Set(t.Context(), "ws_a", d); err != nil {
		t.Fatal(err)
	}
}

// through returns a caller who uses the address of a view.
func through(name string) core.Caller {
	c := caller("ws_a", core.RoleMember)
	c.View = name
	return c
}

func TestEveryRequestTreatsHiddenToolsAsUnknown(t *testing.T) {
	n := newNarrowed(t, `{"name":"calc","include":[{"app":"calc"}]}`)
	c := through("calc")
	if got := strings.Join(names(n.List(c)), " "); got != "calc__add calc__reset" {
		t.Errorf("listed %s", got)
	}
	if got := strings.Join(names(n.ListFor(c, tools.From{Surface: tools.SurfaceSearch})), " "); got != "system__search_tools system__call_tool" {
		t.Errorf("listed %s for a search", got)
	}
	for _, kind := range []core.Kind{core.KindPrompts, core.KindResources, core.KindTemplates} {
		if list := n.ListJSON(c, tools.From{}, kind); string(list) != "[]" {
			t.Errorf("%s: %s", kind, list)
		}
	}
	n.apps.SetInstructions(core.Instructions{Server: "calc", Text: "a"}, core.Instructions{Server: "files", Text: "b"})
	if all := n.Instructions(c); len(all) != 1 || all[0].Server != "calc" {
		t.Errorf("instructions %v", all)
	}
	all := caller("ws_a", core.RoleMember)
	for _, request := range []struct{ hidden, unknown string }{
		{"files__read", "files__none"}, {"read", "none"}, {"files__held", "files__none"}, {"system__open", "system__none"}, {"down__x", "nowhere__x"}, {"files_work__read", "none_work__read"},
	} {
		call := func(c core.Caller, name string) string {
			_, _, err := n.Call(t.Context(), c, tools.Call{Name: name, CheckInput: true, Arguments: json.RawMessage(`{"n":"wrong"}`)})
			_, _, wrapped := n.Call(t.Context(), c, tools.Call{Name: "system__call_tool", Arguments: json.RawMessage(`{"name":"` + name + `","arguments":{"n":"wrong"}}`)})
			if err == nil || wrapped == nil || core.CodeOf(err) != core.CodeOf(wrapped) {
				return "ok"
			}
			return string(core.CodeOf(err)) + " " + strings.ReplaceAll(err.Error(), name, "NAME")
		}
		hidden, unknown := call(c, request.hidden), call(all, request.unknown)
		if hidden != unknown || !strings.HasPrefix(hidden, string(core.CodeToolNotFound)) {
			t.Errorf("%s: %s; an unknown one: %s", request.hidden, hidden, unknown)
		}
	}
	for params, method := range map[string]func(context.Context, core.Caller, tools.Request) (json.RawMessage, error){
		`{"name":"files__p"}`: n.GetPrompt, `{"uri":"f://a"}`: n.ReadResource, `{"uri":"ropewalk://files/f://a"}`: n.ReadResource,
		`{"ref":{"type":"ref/prompt","name":"files__p"}}`: n.Complete, `{"ref":{"type":"ref/resource","uri":"f://{x}"}}`: n.Complete,
	} {
		_, err := method(t.Context(), c, tools.Request{Params: json.RawMessage(params)})
		if code := core.CodeOf(err); code != core.CodeNotFound && code != core.CodeResourceNotFound {
			t.Errorf("%s: %v", params, err)
		}
		if _, err := method(t.Context(), all, tools.Request{Params: json.RawMessage(params)}); err != nil {
			t.Errorf("%s for a caller without a view: %v", params, err)
		}
	}
	for params, method := range map[string]func(context.Context, core.Caller, tools.Request) (json.RawMessage, error){
		`{"name":"down__p"}`: n.GetPrompt, `{"uri":"ropewalk://down/f://a"}`: n.ReadResource, `{"uri":"ui://down/a"}`: n.ReadResource,
		`{"ref":{"type":"ref/prompt","name":"down__p"}}`: n.Complete,
	} {
		if _, err := method(t.Context(), c, tools.Request{Params: json.RawMessage(params)}); core.CodeOf(err) == core.CodeUnavailable || err == nil {
			t.Errorf("%s in a hidden app that is starting: %v", params, err)
		}
		if _, err := method(t.Context(), all, tools.Request{Params: json.RawMessage(params)}); core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("%s in an app that is starting: %v", params, err)
		}
	}
	if _, err := n.ReadView(t.Context(), c, "files", "ui://files/x"); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("a view from a hidden app: %v", err)
	}
	if slices.ContainsFunc(n.apps.asked(), func(call string) bool { return strings.Contains(call, "files") && strings.Contains(call, "wrong") }) {
		t.Errorf("a hidden app was called: %q", n.apps.asked())
	}
}

func TestARenamedToolCanBeCalledByEitherNameAndIsRecordedUnderItsOriginalName(t *testing.T) {
	n := newNarrowed(t, `{"name":"v","include":[{"app":"calc"}],"tools":{"calc__add":{"name":"sum","description":"Adds up numbers"}}}`)
	c := through("v")
	listed := n.List(c)[0]
	if want := `{"name":"calc__sum","description":"Adds up numbers","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"ropewalk/originalName":"add"}}`; string(listed.Raw) != want || listed.BareName() != "sum" {
		t.Errorf("%s, %s", listed.Raw, listed.BareName())
	}
	found, _, err := n.Call(t.Context(), c, tools.Call{Name: "system__search_tools", Arguments: json.RawMessage(`{"query":"sum"}`)})
	if err != nil || !strings.Contains(string(found), `calc__sum`) {
		t.Errorf("%s %v", found, err)
	}
	n.audit.Take()
	for _, name := range []string{"calc__sum", "calc__add", "add"} {
		if _, _, err := n.Call(t.Context(), c, tools.Call{Name: name, Arguments: json.RawMessage(`{}`)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, call := range n.apps.asked() {
		if call != `ws_a calc tools/call {"name":"add","arguments":{}}` {
			t.Errorf("the app got %s", call)
		}
	}
	for _, record := range n.audit.Take() {
		if record.Target != "calc__add" {
			t.Errorf("recorded %+v", record)
		}
	}
	if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__sum"}); core.CodeOf(err) != core.CodeToolNotFound {
		t.Errorf("the new name without the view: %v", err)
	}
}

func TestAChangedViewAppliesToTheNextRequestAndIsAnnounced(t *testing.T) {
	n := newNarrowed(t, `{"name":"v","include":[{"app":"calc"}]}`)
	c := through("v")
	before, announced := len(n.List(c)), 0
	defer n.WatchViews("ws_a", func() { announced++ })()
	setView(t, n.views, `{"name":"v","include":[{"tool":"calc__add"}]}`)
	if after := names(n.List(c)); before != 2 || len(after) != 1 || announced != 1 {
		t.Errorf("%d, %v, announced %d times", before, after, announced)
	}
	if err := n.views.Remove(t.Context(), "ws_a", "v"); err != nil {
		t.Fatal(err)
	}
	if left := n.List(c); len(left) > 0 {
		t.Errorf("a view that was deleted still shows %v", names(left))
	}
}

func TestASessionLosesToolsThatAViewHidesFromItsCallersNewRole(t *testing.T) {
	n := newNarrowed(t, `{"name":"narrow","roles":["member"],"exclude":[{"app":"files"}]}`)
	admin, member := caller("ws_a", core.RoleMember), caller("ws_a", core.RoleMember)
	admin.Workspace.Role = core.RoleAdmin
	var got []string
	s := n.Open(admin, tools.SessionOptions{ID: "s", Notify: client(&got)})
	defer s.Close(t.Context())
	if err := s.Subscribe(t.Context(), "f://a"); err != nil {
		t.Fatal(err)
	}
	update := apps.Notification{Server: "files", Notification: rpc.Notification{Method: "notifications/resources/updated", Params: json.RawMessage(`{"uri":"f://a"}`)}}
	n.apps.Notify("ws_a", update)
	if s.Follow(admin) || !s.Follow(member) {
		t.Error("only the second role should be reported as a change")
	}
	n.apps.Notify("ws_a", update)
	if len(got) != 1 {
		t.Errorf("the session received %q, want only the update before its caller lost the role", got)
	}
	if err := errors.Join(s.Unsubscribe(t.Context(), "f://a"), s.Subscribe(t.Context(), "f://a")); core.CodeOf(err) != core.CodeResourceNotFound {
		t.Errorf("the session subscribed to a hidden app's resource: %v", err)
	}
}

func TestAViewHidesEventsAndNotificationsAboutHiddenItems(t *testing.T) {
	n := newNarrowed(t, `{"name":"v","include":[{"readOnly":true}]}`)
	for data, want := range map[string]bool{
		`{"server":"calc","tool":"add"}`: true, `{"server":"calc","tool":"reset"}`: false, `{"server":"files","tool":"held"}`: false, `{"server":"gone","tool":"x"}`: false,
		`{"tool":"calc__add"}`: true, `{"tool":"calc__reset"}`: false, `{"tool":"system__open"}`: false, `{"tool":"system__call_tool"}`: true, `{"tool":"system__none"}`: false,
		`{"server":"calc","tool":"add","renamedFrom":"reset"}`: false, `{"server":"calc","tool":"add","renamedFrom":"add"}`: true,
		`{"name":"files"}`: true, `7`: true,
	} {
		if got := n.ShowsEvent(through("v"), json.RawMessage(data)); got != want {
			t.Errorf("%s: %t", data, got)
		}
		if !n.ShowsEvent(caller("ws_a", core.RoleMember), json.RawMessage(data)) {
			t.Errorf("%s should be visible to a caller without a view", data)
		}
	}
	var got []string
	s := n.Open(through("v"), tools.SessionOptions{ID: "s", Notify: func(n rpc.Notification) { got = append(got, string(n.Params)) }})
	defer s.Close(t.Context())
	for _, server := range []string{"calc", "files"} {
		n.apps.Notify("ws_a", apps.Notification{Server: server, Notification: rpc.Notification{Method: "notifications/x", Params: json.RawMessage(`"` + server + `"`)}})
	}
	if len(got) != 1 || got[0] != `"calc"` {
		t.Errorf("notified about %v", got)
	}
}
