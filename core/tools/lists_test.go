package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

func prompt(server, name string) core.Prompt {
	return core.Prompt{Server: server, Name: name, Raw: json.RawMessage(`{"x":1,"name":"` + name + `"}`)}
}

func resource(server, uri string) core.Resource {
	return core.Resource{Server: server, URI: uri, Raw: json.RawMessage(`{"uri":"` + uri + `","name":"n"}`)}
}

func template(server, uri string) core.ResourceTemplate {
	return core.ResourceTemplate{Server: server, Template: uri, Raw: json.RawMessage(`{"uriTemplate":"` + uri + `","name":"n"}`)}
}

// twoApps returns two apps, clock and timer, that share a view. Each app has its own template, and both share a third
// one.
func twoApps() *fakeApps {
	view := `"_meta":{"ui":{"resourceUri":"ui://get-time/mcp-app.html","visibility":["app"]},"ui/resourceUri":"ui://get-time/mcp-app.html"}`
	offer := &core.Offer{
		Prompts: []core.Prompt{prompt("clock", "ask"), prompt("timer", "ask")},
		Resources: []core.Resource{
			resource("clock", "ui://get-time/mcp-app.html"), resource("clock", "zone://utc"),
			resource("timer", "ui://get-time/mcp-app.html"), resource("timer", "ropewalk://clock/zone://utc"),
		},
		Templates: []core.ResourceTemplate{template("clock", "zone://{name}"), template("clock", "both://{x}"), template("timer", "run://{id}/log"), template("timer", "both://{x}")},
	}
	for _, server := range []string{"clock", "timer"} {
		t := tool(server, "get-time", `{"name":"get-time",`+view+`}`)
		t.ViewURI = "ui://get-time/mcp-app.html"
		offer.Tools = append(offer.Tools, t)
	}
	f := &fakeApps{result: `{}`}
	f.SetOffer("ws_a", offer)
	return f
}

func TestPromptsAndResourcesAreListedAsWrittenExceptForTheirNames(t *testing.T) {
	n := newNamespace(twoApps(), &events{}, nil)
	c := caller("ws_a", core.RoleMember)
	for kind, want := range map[core.Kind]string{
		core.KindPrompts: `[{"x":1,"name":"clock__ask"},{"x":1,"name":"timer__ask"}]`,
		core.KindResources: `[{"uri":"ui://clock/get-time/mcp-app.html","name":"n"},{"uri":"zone://utc","name":"n"},` +
			`{"uri":"ui://timer/get-time/mcp-app.html","name":"n"},{"uri":"ropewalk://timer/ropewalk://clock/zone://utc","name":"n"}]`,
		core.KindTemplates: `[{"uriTemplate":"zone://{name}","name":"n"},{"uriTemplate":"ropewalk://clock/both://{x}","name":"n"},` +
			`{"uriTemplate":"run://{id}/log","name":"n"},{"uriTemplate":"ropewalk://timer/both://{x}","name":"n"}]`,
	} {
		if got := string(n.ListJSON(c, tools.From{}, kind)); got != want {
			t.Errorf("%s are\n%s, want\n%s", kind, got, want)
		}
		if got := string(n.ListJSON(caller("ws_b", core.RoleOwner), tools.From{}, kind)); got != "[]" {
			t.Errorf("another workspace sees the %s %s", kind, got)
		}
	}
	if all := n.Prompts(c); len(all) != 2 || all[0].Name != "clock__ask" || all[0].Server != "clock" || len(n.Resources(c)) != 4 || len(n.Templates(c)) != 4 {
		t.Errorf("prompts are %v", all)
	}
	want := `{"name":"timer__get-time","_meta":{"ui":{"resourceUri":"ui://timer/get-time/mcp-app.html","visibility":["app"]},"ui/resourceUri":"ui://timer/get-time/mcp-app.html"}}`
	if got := string(n.List(c)[1].Raw); got != want {
		t.Errorf("a tool with a shared view is\n%s, want\n%s", got, want)
	}
}

func TestRequestsReachTheNamedAppUnderItsOwnNames(t *testing.T) {
	type method = func(*tools.Namespace, context.Context, core.Caller, tools.Request) (json.RawMessage, error)
	for name, c := range map[string]struct {
		method       method
		params, want string
		code         core.Code
	}{
		"a prompt": {
			(*tools.Namespace).GetPrompt, `{"_meta":{"a":1.0},"name":"timer__ask","arguments":{"name":"x"}}`,
			`ws_a timer prompts/get {"_meta":{"a":1.0},"name":"ask","arguments":{"name":"x"}}`, "",
		},
		"an unknown prompt":                         {(*tools.Namespace).GetPrompt, `{"name":"timer__other"}`, "", core.CodeNotFound},
		"a prompt without an app":                   {(*tools.Namespace).GetPrompt, `{"name":"ask"}`, "", core.CodeNotFound},
		"no name":                                   {(*tools.Namespace).GetPrompt, `{"name":7}`, "", core.CodeBadRequest},
		"no params":                                 {(*tools.Namespace).GetPrompt, ``, "", core.CodeBadRequest},
		"a resource":                                {(*tools.Namespace).ReadResource, `{"uri":"zone://utc","x":[1]}`, `ws_a clock resources/read {"uri":"zone://utc","x":[1]}`, ""},
		"a shared resource, with the app's name":    {(*tools.Namespace).ReadResource, `{"uri":"ui://timer/get-time/mcp-app.html"}`, `ws_a timer resources/read {"uri":"ui://get-time/mcp-app.html"}`, ""},
		"a resource that looks like a shared one":   {(*tools.Namespace).ReadResource, `{"uri":"ropewalk://timer/ropewalk://clock/zone://utc"}`, `ws_a timer resources/read {"uri":"ropewalk://clock/zone://utc"}`, ""},
		"any resource, with the app's name":         {(*tools.Namespace).ReadResource, `{"uri":"ropewalk://clock/zone://utc"}`, `ws_a clock resources/read {"uri":"zone://utc"}`, ""},
		"a shared resource, without an app's name":  {(*tools.Namespace).ReadResource, `{"uri":"ui://get-time/mcp-app.html"}`, "", core.CodeResourceNotFound},
		"a resource in an unknown app":              {(*tools.Namespace).ReadResource, `{"uri":"ropewalk://moon/zone://utc"}`, "", core.CodeResourceNotFound},
		"a resource that matches a template":        {(*tools.Namespace).ReadResource, `{"uri":"run://7/log"}`, `ws_a timer resources/read {"uri":"run://7/log"}`, ""},
		"a resource that matches a shared template": {(*tools.Namespace).ReadResource, `{"uri":"both://7"}`, "", core.CodeResourceNotFound},
		"a resource that matches a shared template, with the app's name": {(*tools.Namespace).ReadResource, `{"uri":"ropewalk://clock/both://7"}`, `ws_a clock resources/read {"uri":"both://7"}`, ""},
		"a resource whose own URI contains an app's name":                {(*tools.Namespace).ReadResource, `{"uri":"x://clock/unlisted"}`, `ws_a clock resources/read {"uri":"x://clock/unlisted"}`, ""},
		"an unknown resource":       {(*tools.Namespace).ReadResource, `{"uri":"nobody://x"}`, "", core.CodeResourceNotFound},
		"no URI":                    {(*tools.Namespace).ReadResource, `{}`, "", core.CodeBadRequest},
		"a completion for a prompt": {(*tools.Namespace).Complete, `{"ref":{"type":"ref/prompt","name":"clock__ask"},"argument":{"name":"a","value":"v"}}`, `ws_a clock completion/complete {"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"a","value":"v"}}`, ""},
		"a completion for a template": {
			(*tools.Namespace).Complete, `{"ref":{"type":"ref/resource","uri":"ropewalk://timer/both://{x}"},"argument":{}}`,
			`ws_a timer completion/complete {"ref":{"type":"ref/resource","uri":"both://{x}"},"argument":{}}`, "",
		},
		"a completion without a reference":   {(*tools.Namespace).Complete, `{"ref":{"type":"ref/moon"}}`, "", core.CodeBadRequest},
		"a completion for an unknown prompt": {(*tools.Namespace).Complete, `{"ref":{"type":"ref/prompt","name":"x"}}`, "", core.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			y := twoApps()
			_, err := c.method(newNamespace(y, &events{}, nil), t.Context(), caller("ws_a", core.RoleMember), tools.Request{Params: json.RawMessage(c.params)})
			if c.code != "" {
				if core.CodeOf(err) != c.code || len(y.asked()) > 0 {
					t.Errorf("the request returned %v, and the app received %v", err, y.asked())
				}
				return
			}
			if err != nil || len(y.asked()) != 1 || y.asked()[0] != c.want {
				t.Errorf("the app received %v (%v), want %s", y.asked(), err, c.want)
			}
			if _, err := c.method(newNamespace(y, &events{}, nil), t.Context(), caller("ws_b", core.RoleOwner), tools.Request{Params: json.RawMessage(c.params)}); err == nil {
				t.Error("a request in another workspace should not reach the app")
			}
		})
	}
}

func TestSharedURIsContainTheirAppInResultsAsWell(t *testing.T) {
	y := twoApps()
	n := newNamespace(y, &events{}, nil)
	c := caller("ws_a", core.RoleMember)
	y.result = `{"contents":[{"uri":"ui://get-time/mcp-app.html","text":"<h1>"}],"x":1}`
	got, err := n.ReadResource(t.Context(), c, tools.Request{Params: json.RawMessage(`{"uri":"ui://timer/get-time/mcp-app.html"}`)})
	if want := `{"contents":[{"uri":"ui://timer/get-time/mcp-app.html","text":"<h1>"}],"x":1}`; err != nil || string(got) != want {
		t.Errorf("the resource is %s (%v), want %s", got, err, want)
	}
	y.result = `{"content":[{"type":"resource_link","uri":"ui://get-time/mcp-app.html"},{"type":"resource","resource":{"uri":"ui://get-time/mcp-app.html"}},{"type":"resource_link","uri":"zone://utc"},{"type":"text","text":"uri"}]}`
	got, _, err = n.Call(t.Context(), c, tools.Call{Name: "clock__get-time"})
	want := strings.ReplaceAll(y.result, "ui://", "ui://clock/")
	if err != nil || string(got) != want {
		t.Errorf("the tool's result is %s (%v), want %s", got, err, want)
	}
	y.result = `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"ui://get-time/mcp-app.html","text":"t"}}}]}`
	got, err = n.GetPrompt(t.Context(), c, tools.Request{Params: json.RawMessage(`{"name":"timer__ask"}`)})
	if want := strings.ReplaceAll(y.result, "ui://", "ui://timer/"); err != nil || string(got) != want {
		t.Errorf("the prompt is %s (%v), want %s", got, err, want)
	}
}

func TestAListIsMarshaledOnceForAllCallersWhoSeeTheSameList(t *testing.T) {
	y := twoApps()
	features := config.Features{}
	n := newNamespace(y, &events{}, features, system("everyone", false), system("admins", true), system("flagged", false, "bundleManagement"))
	first := n.ListJSON(caller("ws_a", core.RoleMember), tools.From{}, core.KindTools)
	again := n.ListJSON(caller("ws_a", core.RoleMember), tools.From{}, core.KindTools)
	if &first[0] != &again[0] {
		t.Error("the array was marshaled again")
	}
	admin := n.ListJSON(caller("ws_a", core.RoleAdmin), tools.From{}, core.KindTools)
	if strings.Contains(string(first), "system__admins") || !strings.Contains(string(admin), "system__admins") {
		t.Errorf("a member sees %s, an admin %s", first, admin)
	}
	features["bundleManagement"] = false
	if off := n.ListJSON(caller("ws_a", core.RoleMember), tools.From{}, core.KindTools); strings.Contains(string(off), "flagged") || !strings.Contains(string(first), "flagged") {
		t.Errorf("the tool of a flag that was turned off is listed in %s", off)
	}
	var listed []json.RawMessage
	if err := json.Unmarshal(admin, &listed); err != nil || len(listed) != len(n.List(caller("ws_a", core.RoleAdmin)))+1 {
		t.Errorf("the array contains %d tools (%v)", len(listed), err)
	}
	y.SetOffer("ws_a", &core.Offer{Tools: []core.Tool{tool("clock", "other", `{"name":"other"}`)}})
	if changed := n.ListJSON(caller("ws_a", core.RoleMember), tools.From{}, core.KindTools); !strings.Contains(string(changed), "clock__other") {
		t.Errorf("the list should have changed: %s", changed)
	}
}

// client returns a function that records the notifications of a session.
func client(received *[]string) func(rpc.Notification) {
	return func(n rpc.Notification) { *received = append(*received, n.Method+" "+string(n.Params)) }
}

func TestAppsNotificationsReachTheSessionsTheyAreFor(t *testing.T) {
	y := twoApps()
	n := newNamespace(y, &events{}, nil)
	var alice, bob, other []string
	a := n.Open(caller("ws_a", core.RoleMember), tools.SessionOptions{ID: "alice", Notify: client(&alice)})
	b := n.Open(caller("ws_a", core.RoleMember), tools.SessionOptions{ID: "bob", Notify: client(&bob)})
	o := n.Open(caller("ws_b", core.RoleMember), tools.SessionOptions{ID: "other", Notify: client(&other)})
	for session, uri := range map[*tools.Session]string{a: "ui://timer/get-time/mcp-app.html", b: "zone://utc"} {
		if err := session.Subscribe(t.Context(), uri); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Subscribe(t.Context(), "zone://utc"); core.CodeOf(err) != core.CodeResourceNotFound {
		t.Errorf("another workspace subscribed: %v", err)
	}
	if err := b.Subscribe(t.Context(), "zone://"+strings.Repeat("a", 8<<10)); core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("a URI that is too long to keep: %v", err)
	}
	if err := b.SetLevel(t.Context(), "warning"); err != nil {
		t.Fatal(err)
	}
	if err := a.SetLevel(t.Context(), "loud"); core.CodeOf(err) != core.CodeBadRequest {
		t.Errorf("an invalid level: %v", err)
	}
	say := func(server, session, method, params string) {
		y.Notify("ws_a", apps.Notification{Server: server, Session: session, Notification: rpc.Notification{Method: method, Params: json.RawMessage(params)}})
	}
	say("timer", "", "notifications/resources/updated", `{"x":1,"uri":"ui://get-time/mcp-app.html"}`)
	say("clock", "", "notifications/resources/updated", `{"uri":"ui://get-time/mcp-app.html"}`)
	say("clock", "", "notifications/resources/updated", `{"uri":"zone://utc/part"}`)
	say("clock", "", "notifications/resources/updated", `{"uri":"zone://utc2"}`)
	say("clock", "", "notifications/message", `{"level":"info","data":"no"}`)
	say("clock", "", "notifications/message", `{"level":"error","data":"yes"}`)
	say("clock", "alice", "notifications/elicitation/complete", `{"elicitationId":"7"}`)
	wantAlice := []string{`notifications/resources/updated {"x":1,"uri":"ui://timer/get-time/mcp-app.html"}`, `notifications/elicitation/complete {"elicitationId":"7"}`}
	wantBob := []string{`notifications/resources/updated {"uri":"zone://utc/part"}`, `notifications/message {"level":"error","data":"yes"}`}
	if !slices.Equal(alice, wantAlice) || !slices.Equal(bob, wantBob) || len(other) > 0 {
		t.Errorf("alice received %q, bob %q, the other %q", alice, bob, other)
	}
	if err := b.Unsubscribe(t.Context(), "zone://utc"); err != nil {
		t.Fatal(err)
	}
	a.RootsChanged(t.Context())
	a.Close(t.Context())
	a.Close(t.Context())
	b.Close(t.Context())
	o.Close(t.Context())
	asked := y.Operations()
	slices.Sort(asked)
	want := []string{
		"end alice", "end bob", "end other", "level ws_a warning", "no listener in ws_a", "no listener in ws_b", "roots alice",
		"subscribe ws_a clock bob zone://utc", "subscribe ws_a timer alice ui://get-time/mcp-app.html",
		"unsubscribe ws_a clock bob zone://utc", "unsubscribe ws_a timer alice ui://get-time/mcp-app.html",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("the apps received %q, want %q", asked, want)
	}
}

func TestAppsLogAtTheLowestLevelSetByAClient(t *testing.T) {
	y := twoApps()
	n := newNamespace(y, &events{}, nil)
	alice := caller("ws_a", core.RoleMember)
	read := func(level string) {
		params := json.RawMessage(`{"uri":"zone://utc","_meta":{"io.modelcontextprotocol/logLevel":"` + level + `"}}`)
		if _, err := n.ReadResource(t.Context(), alice, tools.Request{Params: params, From: tools.From{Stateless: true}}); err != nil {
			t.Fatal(err)
		}
	}
	read("warning")
	read("error") // the level is still warning
	read("loud")
	s := n.Open(alice, tools.SessionOptions{ID: "s", Notify: func(rpc.Notification) {}})
	defer s.Close(t.Context())
	if err := s.SetLevel(t.Context(), "critical"); err != nil {
		t.Fatal(err)
	}
	read("debug")
	if _, err := n.ReadResource(t.Context(), alice, tools.Request{Params: json.RawMessage(`{"uri":"zone://utc","_meta":{"io.modelcontextprotocol/logLevel":"debug"}}`), From: tools.From{Session: s}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"level ws_a warning", "level ws_a warning", "level ws_a debug"}; !slices.Equal(y.Operations(), want) {
		t.Errorf("the apps received %q, want %q", y.Operations(), want)
	}
}

func TestUpdatesFromAnInstanceReachTheSessionsItServes(t *testing.T) {
	y := twoApps()
	n := newNamespace(y, &events{}, nil)
	heard := map[string]*[]string{"alice": {}, "bob": {}, "": {}}
	for id, list := range heard {
		s := n.Open(caller("ws_a", core.RoleMember), tools.SessionOptions{ID: id, Notify: client(list)})
		if err := s.Subscribe(t.Context(), "zone://utc"); err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
	}
	for i, sent := range []apps.Notification{
		{},
		{Except: []string{"alice"}},
		{Except: []string{"", "bob"}},
		{Session: "alice", FromPool: true},
		{FromPool: true},
	} {
		sent.Server, sent.Notification = "clock", rpc.Notification{Method: "notifications/resources/updated", Params: json.RawMessage(fmt.Sprintf(`{"n":%d,"uri":"zone://utc"}`, i))}
		y.Notify("ws_a", sent)
	}
	for id, want := range map[string]string{"alice": "0 2 3", "bob": "0 1", "": "0 1 4"} {
		var got []string
		for _, text := range *heard[id] {
			got = append(got, text[len(`notifications/resources/updated {"n":`):][:1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q heard %v, want %s", id, got, want)
		}
	}
}

func TestACallsLogMessagesUseTheSessionsLevel(t *testing.T) {
	y := twoApps()
	n := newNamespace(y, &events{}, nil)
	s := n.Open(caller("ws_a", core.RoleMember), tools.SessionOptions{ID: "s", Notify: func(rpc.Notification) {}})
	defer s.Close(t.Context())
	loud := json.RawMessage(`{"io.modelcontextprotocol/logLevel":"error"}`)
	for name, c := range map[string]struct {
		level string
		call  tools.Call
		want  int // how many of three notifications arrive: a debug message, an error, and progress
	}{
		"a session that set no level":         {"", tools.Call{From: tools.From{Session: s}}, 3},
		"no session":                          {"", tools.Call{}, 3},
		"a stateless request with a level":    {"", tools.Call{Meta: loud, From: tools.From{Stateless: true}}, 2},
		"a stateless request without a level": {"", tools.Call{From: tools.From{Stateless: true}}, 1},
		"a session that set the level error":  {"error", tools.Call{From: tools.From{Session: s}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if c.level != "" {
				if err := s.SetLevel(t.Context(), c.level); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = s.SetLevel(t.Context(), "debug") }()
			}
			heard := 0
			c.call.Name, c.call.Notify = "clock__get-time", func(rpc.Notification) { heard++ }
			if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), c.call); err != nil {
				t.Fatal(err)
			}
			notify := y.Calls()[len(y.Calls())-1].Notify
			notify(rpc.Notification{Method: "notifications/message", Params: json.RawMessage(`{"level":"debug"}`)})
			notify(rpc.Notification{Method: "notifications/message", Params: json.RawMessage(`{"level":"error"}`)})
			notify(rpc.Notification{Method: "notifications/progress"})
			if heard != c.want {
				t.Errorf("%d were passed on, want %d", heard, c.want)
			}
		})
	}
}

func TestResourcesAreFoundByEquivalentURIs(t *testing.T) {
	view := tool("notes", "show", `{"name":"show"}`)
	view.ViewURI = "ui://日本/view"
	for name, c := range map[string]struct{ asked, own string }{
		"unencoded, as it is listed":                                          {"notes://café/menu", "notes://café/menu"},
		"percent-encoded":                                                     {"notes://caf%C3%A9/menu", "notes://café/menu"},
		"in lower case":                                                       {"notes://caf%c3%a9/menu", "notes://café/menu"},
		"unreserved characters":                                               {"notes://caf%C3%A9/%6Denu", "notes://café/menu"},
		"listed percent-encoded":                                              {"notes://naïve", "notes://na%c3%afve"},
		"a view with the app's name":                                          {"ui://notes/%E6%97%A5%E6%9C%AC/view", "ui://日本/view"},
		"a view without the app's name":                                       {"ui://%E6%97%A5%E6%9C%AC/view", "ui://日本/view"},
		"a resource that matches a template":                                  {"day://caf%C3%A9/7", "day://caf%C3%A9/7"},
		"a resource that matches a template, unencoded":                       {"day://café/7", "day://café/7"},
		"a resource that matches a template with a query":                     {"find://notes?q=a+b&n=2", "find://notes?q=a+b&n=2"},
		"a resource that matches a template, with an encoded query":           {"find://notes?q=a%20b", "find://notes?q=a%20b"},
		"a shared resource, with the app's name":                              {"ropewalk://other/both://%C3%A9", "both://%c3%a9"},
		"a shared resource, with the name of the app that lists it unencoded": {"ropewalk://notes/both://%C3%A9", "both://é"},
	} {
		t.Run(name, func(t *testing.T) {
			y := &fakeApps{result: `{"contents":[]}`}
			y.SetOffer("ws_a", &core.Offer{
				Tools:     []core.Tool{view},
				Resources: []core.Resource{resource("notes", "notes://café/menu"), resource("notes", "notes://na%c3%afve"), resource("notes", "both://é"), resource("other", "both://%c3%a9")},
				Templates: []core.ResourceTemplate{template("notes", "day://café/{n}"), template("notes", "find://notes{?q,n}"), template("other", "find://other{?q}")},
			})
			n := newNamespace(y, &events{}, nil)
			if _, err := n.ReadResource(t.Context(), caller("ws_a", core.RoleMember), tools.Request{Params: json.RawMessage(`{"uri":"` + c.asked + `"}`)}); err != nil {
				t.Fatal(err)
			}
			if asked := y.asked(); len(asked) != 1 || !strings.HasSuffix(asked[0], ` resources/read {"uri":"`+c.own+`"}`) {
				t.Errorf("the app received %v", asked)
			}
		})
	}
	y := &fakeApps{}
	y.SetOffer("ws_a", &core.Offer{Resources: []core.Resource{resource("notes", "both://é"), resource("other", "both://%c3%a9")}})
	_, err := newNamespace(y, &events{}, nil).ReadResource(t.Context(), caller("ws_a", core.RoleMember), tools.Request{Params: json.RawMessage(`{"uri":"both://%C3%A9"}`)})
	if core.CodeOf(err) != core.CodeResourceNotFound || !strings.Contains(err.Error(), "several apps") {
		t.Errorf("the result of reading a URI listed by two apps: %v", err)
	}
}
