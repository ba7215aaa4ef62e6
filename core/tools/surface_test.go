package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/core/trust"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

// manyTools returns 500 tools from 25 apps.
func manyTools() (all []core.Tool) {
	for a := range 25 {
		for i := range 20 {
			app, name := fmt.Sprintf("app%02d", a), fmt.Sprintf("do_%02d", i)
			all = append(all, tool(app, name, fmt.Sprintf(`{"name":%q,"description":"Does thing number %d %s","inputSchema":{"type":"object"}}`, name, i, strings.Repeat("x", 100))))
		}
	}
	return all
}

func searching(y tools.Apps, o tools.Options) *tools.Namespace {
	o.Apps, o.Events, o.Logger = y, &events{}, hclog.NewNullLogger()
	if o.Features == nil {
		o.Features = config.Features{}
	}
	n := tools.New(o)
	n.Add(n.Search(registries{}), n.SearchTools(), n.CallTool())
	return n
}

func TestTheSearchSurfaceListsTheDiscoveryToolsAndFavourites(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": manyTools()}}
	me, search := caller("ws_a", core.RoleMember), tools.From{Surface: tools.SurfaceSearch}
	for name, c := range map[string]struct {
		o    tools.Options
		from tools.From
		want string
	}{
		"search":                {tools.Options{}, search, "system__search_tools system__call_tool"},
		"with favourites":       {tools.Options{Favourites: []string{"app03__do_0*", "system__search"}}, search, "system__search system__search_tools system__call_tool app03__do_00 app03__do_01"},
		"above the budget":      {tools.Options{Budget: 3000}, search, "system__search_tools system__call_tool"},
		"within the budget":     {tools.Options{Budget: 1_000_000}, search, "app00__do_00 app00__do_01 app00__do_02"},
		"full":                  {tools.Options{}, tools.From{Surface: tools.SurfaceFull}, "app00__do_00 app00__do_01 app00__do_02"},
		"tool discovery is off": {tools.Options{Features: config.Features{config.FlagToolDiscovery: false}}, search, "app00__do_00 app00__do_01 app00__do_02"},
	} {
		t.Run(name, func(t *testing.T) {
			n := searching(y, c.o)
			got := names(n.ListFor(me, c.from))
			if !strings.HasPrefix(strings.Join(got, " "), c.want) || c.from.Surface == search.Surface && len(got) > 13 && !strings.HasPrefix(c.want, "app00") {
				t.Errorf("listed %d: %.200q, want %s", len(got), got, c.want)
			}
			for range 3 {
				var raw []struct{ Name string }
				if err := json.Unmarshal(n.ListJSON(me, c.from, core.KindTools), &raw); err != nil || len(raw) != len(got) || raw[0].Name != got[0] {
					t.Errorf("the array differs: %d of %d, %v", len(raw), len(got), err)
				}
			}
			if _, _, err := n.Call(t.Context(), me, tools.Call{Name: "app24__do_19", From: c.from}); err != nil {
				t.Errorf("a tool that is not listed should be callable: %v", err)
			}
		})
	}
}

func TestACallThroughTheSearchSurfaceCallsTheToolInItsArguments(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`, tools: map[string][]core.Tool{"ws_a": {
		{Server: "calc", Name: "add", Raw: json.RawMessage(`{"name":"add"}`), ViewURI: "ui://calc/sum"},
	}}}
	log := &fakes.Audit{}
	n := searching(y, tools.Options{Audit: log})
	me := caller("ws_a", core.RoleMember)
	call := func(arguments string) (json.RawMessage, error) {
		raw, _, err := n.Call(t.Context(), me, tools.Call{Name: "system__call_tool", Arguments: json.RawMessage(arguments)})
		return raw, err
	}
	raw, err := call(`{"name":"calc__add","arguments":{"a":12345678901234567890}}`)
	if err != nil || !strings.Contains(string(raw), `"_meta":{"ui":{"resourceUri":"ui://calc/calc/sum"}}`) {
		t.Errorf("got %s, %v", raw, err)
	}
	if calls := y.Calls(); len(calls) != 1 || !strings.Contains(calls[0].String(), `"name":"add","arguments":{"a":12345678901234567890}`) {
		t.Errorf("the app received %v", calls)
	}
	if records := log.Take(); len(records) != 2 || records[0].Target != "calc__add" || records[1].Action != "tools.call.ended" {
		t.Errorf("recorded %+v", records)
	}
	for arguments, code := range map[string]core.Code{
		`{"name":"calc__none"}`:               core.CodeToolNotFound,
		`{"name":"system__none"}`:             core.CodeToolNotFound,
		`{}`:                                  core.CodeInvalidInput,
		`{"name":7}`:                          core.CodeInvalidInput,
		`{"name":"calc__add","a":1}`:          core.CodeInvalidInput,
		`{"name":"calc__add","arguments":[]}`: core.CodeInvalidInput,
		`{"name":"calc__add","Arguments":{}}`: core.CodeInvalidInput,
		`{"NAME":"calc__add"}`:                core.CodeInvalidInput,
	} {
		if _, err := call(arguments); core.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", arguments, err, code)
		}
	}
	if raw, err := call(`{"name":"system__call_tool"}`); err != nil || !strings.Contains(string(raw), "another tool") {
		t.Errorf("itself: %s, %v", raw, err)
	}
}

func TestNoToolIsCalledThroughAnotherIfToolDiscoveryIsOff(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`, tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add"}`)}}}
	n := searching(y, tools.Options{Features: config.Features{config.FlagToolDiscovery: false}})
	_, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "system__call_tool", Arguments: json.RawMessage(`{"name":"calc__add"}`)})
	if core.CodeOf(err) != core.CodeFeatureDisabled || len(y.Calls()) != 0 {
		t.Errorf("%v, and the app received %v", err, y.Calls())
	}
}

// unlinked is the accounts of a caller who has not yet linked an account with the mail app.
type unlinked struct{ namedAccounts }

func (*unlinked) Choose(_ context.Context, _ core.Caller, app string, _ core.AccountWanted) (core.Account, error) {
	if app == "mail" {
		return core.Account{}, core.Errorf(core.CodeLoginNeeded, "app mail needs a login")
	}
	return core.Account{}, nil
}

func TestASearchReturnsDefinitionsAndWhatTheirCallsNeed(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {
		tool("files", "delete_file", `{"name":"delete_file","description":"Deletes a file","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`),
		tool("files", "read_file", `{"name":"read_file","description":"Reads a file","inputSchema":{"type":"object"}}`),
		tool("files", "remove_file", `{"name":"remove_file","description":"Removes a file, from the view","_meta":{"ui":{"visibility":["app"]}}}`),
		tool("mail", "delete_mail", `{"name":"delete_mail","description":"Deletes an email","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`),
		tool("mail", "archive", `{"name":"archive","description":"Archives an email","inputSchema":{"type":"object"}}`),
	}, "ws_b": {tool("files", "delete_secret", `{"name":"delete_secret"}`)}}}
	n := searching(y, tools.Options{Accounts: &unlinked{}, Approvals: trust.NewApprovals(trust.ApprovalOptions{Patterns: []string{"destructiveHint"}})})
	for query, parts := range map[string][]string{
		"remove a file":    {`"name":"files__delete_file"`, `"inputSchema":{"type":"object"}`, `"destructiveHint":true`, `"ropewalk/needs":["approval"]`},
		"delete mail":      {`"name":"mail__delete_mail"`, `"ropewalk/needs":["approval","account"]`},
		"archive an email": {`"name":"mail__archive"`, `"ropewalk/needs":["account"]`},
	} {
		raw, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "system__search_tools", Arguments: json.RawMessage(`{"query":"` + query + `","limit":1.0}`)})
		var got struct {
			StructuredContent struct{ Tools []json.RawMessage }
		}
		if err != nil || json.Unmarshal(raw, &got) != nil || len(got.StructuredContent.Tools) != 1 {
			t.Fatalf("%s, %v", raw, err)
		}
		for _, part := range parts {
			if !strings.Contains(string(got.StructuredContent.Tools[0]), part) {
				t.Errorf("%s, want %s", got.StructuredContent.Tools[0], part)
			}
		}
	}
}

func TestAViewHidesAppsWhoseToolsAreMissing(t *testing.T) {
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	setView(t, views, `{"name":"narrow","include":[{"app":"calc"}]}`)
	y := &fakeApps{}
	y.SetMissing(core.MissingApp{Name: "calc", Status: core.StateDead}, core.MissingApp{Name: "mail", Status: core.StateDead})
	n := searching(y, tools.Options{Views: views})
	who := caller("ws_a", core.RoleMember)
	for view, want := range map[string]string{"": "[{calc dead} {mail dead}]", "narrow": "[{calc dead}]"} {
		if who.View = view; fmt.Sprint(n.Missing(who)) != want {
			t.Errorf("with the view %q: %v", view, n.Missing(who))
		}
	}
}

func TestAKeyAViewOrAWorkspaceSetsTheSurface(t *testing.T) {
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	setView(t, views, `{"name":"short","surface":"search","groups":["staff"]}`)
	setView(t, views, `{"name":"long","surface":"full"}`)
	setView(t, views, `{"name":"open"}`)
	n := searching(&fakeApps{}, tools.Options{Views: views, Surfaces: map[string]string{"ws_b": core.SurfaceSearch}})
	for _, c := range []struct {
		workspace, key, address, group string
		want                           tools.Surface
	}{
		{"ws_a", "", "", "", tools.SurfaceFull},
		{"ws_b", "", "", "", tools.SurfaceSearch},
		{"ws_b", core.SurfaceFull, "", "", tools.SurfaceFull},
		{"ws_a", "", "short", "", tools.SurfaceSearch},
		{"ws_a", core.SurfaceFull, "short", "", tools.SurfaceFull},
		{"ws_a", "", "open", "staff", tools.SurfaceSearch},
		{"ws_a", "", "long", "staff", tools.SurfaceFull},
	} {
		who := caller(c.workspace, core.RoleMember)
		who.Scope.Surface, who.View, who.User.Groups = c.key, c.address, c.group
		if got := n.SurfaceFor(who); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// sessionApps offers a different list to clients with a session, because apps may run a separate instance for them.
type sessionApps struct {
	fakeapps.Apps
	own *core.Offer
}

func (a *sessionApps) Offer(workspace string, client *interact.Client) *core.Offer {
	if _, ok := client.Session(); ok {
		return a.own
	}
	return a.Apps.Offer(workspace, client)
}

func TestASearchFindsOnlyToolsThatItsClientSeesAndCanUse(t *testing.T) {
	apps := &sessionApps{own: &core.Offer{}}
	shared := &core.Offer{}
	for _, name := range []string{"read", "write"} {
		apps.own.Tools = append(apps.own.Tools, tool("own", name, `{"name":"`+name+`","inputSchema":{"type":"object"}}`))
		shared.Tools = append(shared.Tools, tool("shared", name, `{"name":"`+name+`","inputSchema":{"type":"object"}}`))
	}
	apps.SetOffer("ws_a", shared)
	n := tools.New(tools.Options{Apps: apps, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger()})
	n.Add(n.SearchTools(), n.Search(nil))
	c := caller("ws_a", core.RoleMember)
	session := n.Open(c, tools.SessionOptions{ID: "s"})
	defer session.Close(t.Context())
	reads := func(name string) bool { return strings.HasSuffix(name, "__read") }
	for _, x := range []struct {
		from tools.From
		want string
	}{
		{tools.From{}, "shared__read shared__write"}, {tools.From{Stateless: true}, "own__read own__write"},
		{tools.From{Session: session}, "own__read own__write"}, {tools.From{Session: session, Uses: reads}, "own__read"},
	} {
		for _, search := range []string{"system__search_tools", "system__search"} {
			for _, query := range []string{"", "read write"} {
				raw, _, err := n.Call(t.Context(), c, tools.Call{Name: search, Arguments: json.RawMessage(`{"query":"` + query + `"}`), From: x.from})
				var found struct {
					StructuredContent struct{ Tools []struct{ Name string } }
				}
				if err != nil || json.Unmarshal(raw, &found) != nil {
					t.Fatalf("%s: %s, %v", search, raw, err)
				}
				var names []string
				for _, one := range found.StructuredContent.Tools {
					if !strings.HasPrefix(one.Name, "system__") {
						names = append(names, one.Name)
					}
				}
				if slices.Sort(names); strings.Join(names, " ") != x.want {
					t.Errorf("%s for %q found %v, not %s", search, query, names, x.want)
				}
			}
		}
	}
}
