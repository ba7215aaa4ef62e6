package tools_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

var agreements = flag.Int("agreements", 3000, "random cases of TestListSearchAndCallAgreeOnWhatACallerSees")

// randomRules returns random rules over the test's tools.
func randomRules(r *rand.Rand) (all []core.ToolRule) {
	for range r.IntN(3) {
		one := core.ToolRule{App: []string{"", "a", "b"}[r.IntN(3)], Tool: []string{"a__*", "*__x", "*y", "system__*", "b__z"}[r.IntN(5)]}
		if r.IntN(3) == 0 {
			reads := r.IntN(2) == 0
			one.ReadOnly = &reads
		}
		all = append(all, one)
	}
	return all
}

// A search finds exactly the listed tools, and exactly these can be called. This is true for callers with any role and
// group, for keys and addresses that are bound to any views, and for each surface and revision.
func TestListSearchAndCallAgreeOnWhatACallerSees(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 43)) //nolint:gosec // a seed makes it repeatable
	apps := &fakeApps{result: `{"content":[]}`}
	offer := &core.Offer{}
	for _, server := range []string{"a", "b", "c"} {
		for _, name := range []string{"x", "y", "z"} {
			reads := fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":%t}}`, name, name == "x")
			offer.Tools = append(offer.Tools, tool(server, name, reads))
		}
	}
	apps.SetOffer("ws_a", offer)
	everything := []string{"system__open", "system__admins", "a__none", "none__x", "a__new"}
	for _, one := range offer.Tools {
		everything = append(everything, one.FullName())
	}
	views, err := view.NewRegistry(t.Context(), noViews{}, nil, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	n := tools.New(tools.Options{Apps: apps, Events: &events{}, Features: config.Features{}, Logger: hclog.NewNullLogger(), Views: views})
	n.Add(system("open", false), system("admins", true), n.SearchTools(), n.CallTool())
	for i := range *agreements {
		if i%20 == 0 {
			replaceViews(t, r, views)
		}
		c := caller("ws_a", []core.Role{core.RoleMember, core.RoleOwner}[r.IntN(2)])
		c.Workspace.Role = []core.Role{core.RoleMember, core.RoleAdmin}[r.IntN(2)]
		c.Scope.View, c.View = []string{"", "first", "second", "gone"}[r.IntN(4)], []string{"", "first", "second"}[r.IntN(3)]
		c.User.Groups = core.GroupList([][]string{nil, {"others"}, {"guests", "others"}, {"staff"}}[r.IntN(4)])
		checkAgreement(t, n, c, tools.From{Stateless: r.IntN(2) == 0}, everything[r.IntN(len(everything))])
		if t.Failed() {
			t.Fatalf("case %d, views %+v", i, views.List("ws_a"))
		}
	}
}

// replaceViews declares a random view for members, and stores three more random views. One of these applies to groups.
func replaceViews(t *testing.T, r *rand.Rand, views *view.Registry) {
	t.Helper()
	random := func(name string) core.View {
		d := core.View{Name: name, Include: randomRules(r), Exclude: randomRules(r)}
		if r.IntN(2) == 0 {
			d.Tools = map[string]core.Relabel{"a__x": {Name: "new"}}
		}
		return d
	}
	bound, err := view.New(random("bound"))
	if err != nil {
		t.Fatal(err)
	}
	bound.Roles = []core.Role{core.RoleMember}
	views.Declare([]view.Declared{{View: bound}})
	for _, name := range []string{"first", "second", "third"} {
		d := random(name)
		if name == "third" {
			d.Groups = []string{"staff", "guests"}[:1+r.IntN(2)]
		}
		if _, err := views.Set(t.Context(), "ws_a", d); err != nil {
			t.Fatal(err)
		}
	}
}

// checkAgreement compares the lists, the search and the calls of one caller for one tool name.
func checkAgreement(t *testing.T, n *tools.Namespace, c core.Caller, from tools.From, name string) {
	t.Helper()
	listed := names(n.ListFor(c, from))
	if other := names(n.List(c)); !slices.Equal(listed, other) {
		t.Errorf("%+v: /mcp lists %v, /v1 and chat %v", c, listed, other)
	}
	var marshalled []struct{ Name string }
	_ = json.Unmarshal(n.ListJSON(c, from, core.KindTools), &marshalled)
	if len(marshalled) != len(listed) {
		t.Errorf("%+v: %d tools were sent, but %d were listed", c, len(marshalled), len(listed))
	}
	raw, _, err := n.Call(t.Context(), c, tools.Call{Name: "system__search_tools", Arguments: json.RawMessage(`{"query":"","limit":50}`), From: from})
	var found struct {
		StructuredContent struct{ Tools []struct{ Name string } }
	}
	if err != nil || json.Unmarshal(raw, &found) != nil {
		t.Errorf("%+v: searching: %s, %v", c, raw, err)
	}
	if len(found.StructuredContent.Tools) != len(listed) {
		t.Errorf("%+v: a search found %+v, but the list contains %v", c, found.StructuredContent.Tools, listed)
	}
	isListed := slices.Contains(listed, name) || name == "a__x" && slices.Contains(listed, "a__new") // its own name works as well
	for _, call := range []tools.Call{{Name: name, From: from}, {Name: "system__call_tool", Arguments: json.RawMessage(`{"name":"` + name + `"}`), From: from}} {
		_, _, err := n.Call(t.Context(), c, call)
		code := core.CodeOf(err)
		known := err == nil || code == core.CodeForbidden && name == "system__admins" && n.ShowsTool(c, "", name) // the error reports a missing role, but not if a view hides the tool
		if known != isListed && code != core.CodeForbidden || err != nil && !known && code != core.CodeToolNotFound {
			t.Errorf("%+v: %s is listed: %t; %s: %v", c, name, isListed, call.Name, err)
		}
	}
	if server := "a"; name == "a__x" && n.ShowsTool(c, server, "x") != isListed {
		t.Errorf("%+v: events about %s are sent: %t, listed: %t", c, name, !isListed, isListed)
	}
}
