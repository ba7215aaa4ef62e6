package view

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func tool(server, name, annotations string) core.Tool {
	return core.Tool{Server: server, Name: name, Raw: json.RawMessage(`{"name":"` + name + `","annotations":{` + annotations + `}}`)}
}

func newView(t *testing.T, definition string) *View {
	t.Helper()
	var d core.View
	if err := json.Unmarshal([]byte(definition), &d); err != nil {
		t.Fatal(err)
	}
	if d.Name == "" {
		d.Name = "v"
	}
	v, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func namesOf(n Narrowed) (all []string) {
	for i, label := range n.Labels() {
		name := n.Tools[i].LongName()
		if label.Name != n.Tools[i].FullName() {
			name += ">" + label.Name
		}
		all = append(all, name)
	}
	return all
}

func TestAViewShowsOnlyToolsThatItsRulesAllow(t *testing.T) {
	long := strings.Repeat("long", 20)
	offer := &core.Offer{Tools: []core.Tool{
		tool("calc", "add", `"readOnlyHint":true`), tool("calc", "reset", ``), tool("files", long, ``),
		tool("files", "read", `"readOnlyHint":true,"openWorldHint":false`), tool("files", "write", `"destructiveHint":false,"idempotentHint":true`),
		{Server: "odd", Name: "broken", Raw: json.RawMessage(`{"annotations":7}`)},
	}}
	everything := "calc__add calc__reset files__" + long + " files__read files__write odd__broken"
	for definition, want := range map[string]string{
		`{}`:                               everything,
		`{"default":"allow"}`:              everything,
		`{"default":"deny"}`:               "",
		`{"include":[{"tool":"calc__*"}]}`: "calc__add calc__reset",
		`{"include":[{"tool":"*__read"},{"app":"calc","tool":"*reset"}]}`:                                "calc__reset files__read",
		`{"include":[{"tool":"calc__"}]}`:                                                                "",
		`{"include":[{"tool":"CALC__add"}]}`:                                                             "",
		`{"include":[{"tool":"calc.*"}]}`:                                                                "",
		`{"include":[{"tool":"files__` + long + `"}]}`:                                                   "files__" + long,
		`{"include":[{"tool":"` + tool("files", long, "").FullName() + `"}]}`:                            "files__" + long,
		`{"exclude":[{"app":"files"},{"app":"od*"}]}`:                                                    "calc__add calc__reset",
		`{"include":[{"app":"calc"}],"exclude":[{"tool":"calc__reset"}]}`:                                "calc__add",
		`{"include":[{"readOnly":true}]}`:                                                                "calc__add files__read",
		`{"include":[{"readOnly":false}]}`:                                                               "calc__reset files__" + long + " files__write",
		`{"exclude":[{"readOnly":false}]}`:                                                               "calc__add files__read",
		`{"exclude":[{"destructive":true}]}`:                                                             "calc__add files__read files__write",
		`{"include":[{"destructive":true}]}`:                                                             "calc__reset files__" + long,
		`{"include":[{"idempotent":true,"app":"files"}]}`:                                                "files__read files__write",
		`{"include":[{"openWorld":false}]}`:                                                              "files__read",
		`{"include":[{"app":"calc"}],"tools":{"calc__add":{"name":"plus"}}}`:                             "calc__add>calc__plus calc__reset",
		`{"include":[{"app":"calc"}],"tools":{"calc__add":{"name":"reset"}}}`:                            "calc__add calc__reset",
		`{"include":[{"tool":"calc__add"}],"tools":{"calc__add":{"name":"reset"}}}`:                      "calc__add>calc__reset",
		`{"include":[{"tool":"calc__plus"}],"tools":{"calc__add":{"name":"plus"}}}`:                      "",
		`{"include":[{"app":"files","tool":"*long*"}],"tools":{"files__` + long + `":{"name":"short"}}}`: "files__" + long + ">files__short",
	} {
		set := &Set{views: []*View{newView(t, definition)}}
		if got := strings.Join(namesOf(set.Narrow(offer)), " "); got != want {
			t.Errorf("%s shows %q, want %q", definition, got, want)
		}
	}
}

func TestAnEmptyOrContradictoryDefinitionIsRefused(t *testing.T) {
	long := strings.Repeat("x", 70)
	for definition, want := range map[string]string{
		`{"name":"A"}`:        `name is "A"`,
		`{"name":"-a"}`:       `name is "-a"`,
		`{"default":"maybe"}`: "it must be allow or deny",
		`{"default":"allow","include":[{"app":"a"}]}`:               "include has no effect",
		`{"include":[{}]}`:                                          "include[0] is empty",
		`{"exclude":[{"app":"a"},{}]}`:                              "exclude[1] is empty",
		`{"exclude":[{"tool":"` + strings.Repeat("y", 201) + `"}]}`: "more than 200 characters",
		`{"tools":{"add":{"name":"x"}}}`:                            "tools.add is not the full name",
		`{"tools":{"calc__":{"name":"x"}}}`:                         "is not the full name",
		`{"tools":{"system__search":{"name":"x"}}}`:                 "one of the server's own tools",
		`{"tools":{"a__b":{}}}`:                                     "changes nothing",
		`{"tools":{"a__b":{"name":"x y"}}}`:                         "letters, digits",
		`{"tools":{"a__b":{"name":"` + long + `"}}}`:                "at most 64",
		`{"tools":{"a__b":{"name":"x"},"a__c":{"name":"x"}}}`:       "tools.a__b.name and tools.a__c.name are the same",
	} {
		d := core.View{Name: "v"}
		if err := json.Unmarshal([]byte(definition), &d); err != nil {
			t.Fatal(err)
		}
		if _, err := New(d); core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", definition, err, want)
		}
	}
}

func TestAnAppsPromptsAndResourcesAreShownWithItsTools(t *testing.T) {
	offer := &core.Offer{
		Tools:     []core.Tool{tool("calc", "add", `"readOnlyHint":true`), tool("files", "write", ``)},
		Prompts:   []core.Prompt{{Server: "calc", Name: "p"}, {Server: "files", Name: "p"}, {Server: "texts", Name: "p"}},
		Resources: []core.Resource{{Server: "files", URI: "a://b"}, {Server: "texts", URI: "a://c"}},
		Templates: []core.ResourceTemplate{{Server: "calc", Template: "a://{b}"}, {Server: "files", Template: "c://{b}"}},
		Held:      []core.HeldTool{{Server: "calc", Name: "held"}, {Server: "files", Name: "held"}},
	}
	for definition, want := range map[string]string{
		`{}`:                                "calc files texts|files texts|calc files|calc files",
		`{"include":[{"readOnly":true}]}`:   "calc texts|texts|calc|", // annotations do not affect an app without tools, and annotations of held tools are unknown
		`{"exclude":[{"readOnly":false}]}`:  "calc texts|texts|calc|",
		`{"include":[{"app":"texts"}]}`:     "texts|texts||",
		`{"exclude":[{"tool":"texts__*"}]}`: "calc files|files|calc files|calc files",
		`{"include":[{"tool":"*__held"}]}`:  "|||calc files",
		`{"default":"deny"}`:                "|||",
	} {
		n := (&Set{views: []*View{newView(t, definition)}}).Narrow(offer)
		var prompts, resources, templates, held []string
		for _, p := range n.Prompts {
			prompts = append(prompts, p.Server)
		}
		for _, r := range n.Resources {
			resources = append(resources, r.Server)
		}
		for _, r := range n.Templates {
			templates = append(templates, r.Server)
		}
		for _, h := range n.Held {
			held = append(held, h.Server)
		}
		got := strings.Join(prompts, " ") + "|" + strings.Join(resources, " ") + "|" + strings.Join(templates, " ") + "|" + strings.Join(held, " ")
		if got != want {
			t.Errorf("%s shows %q, want %q", definition, got, want)
		}
	}
}

// randomView returns a random valid definition over a few apps, tools and annotations.
func randomView(r *rand.Rand, name string) core.View {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	flag := func() *bool {
		if r.IntN(3) > 0 {
			return nil
		}
		yes := r.IntN(2) == 0
		return &yes
	}
	rules := func() (all []core.ToolRule) {
		for range r.IntN(3) {
			one := core.ToolRule{App: pick("", "a", "b", "*"), Tool: pick("", "a__*", "*__x", "b__y", "*y*"), ReadOnly: flag(), Destructive: flag()}
			if one != (core.ToolRule{}) {
				all = append(all, one)
			}
		}
		return all
	}
	v := core.View{Name: name, Include: rules(), Exclude: rules(), Tools: map[string]core.Relabel{}}
	if len(v.Include) == 0 && r.IntN(4) == 0 {
		v.Default = core.ViewDenies
	}
	if r.IntN(2) == 0 {
		v.Tools["a__x"] = core.Relabel{Name: pick("x", "y", "new"), Description: pick("", "other")}
	}
	return v
}

func TestViewsOnlyNarrowAndNamesStayUnique(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 2)) //nolint:gosec // a seed makes it repeatable
	var offer core.Offer
	for _, server := range []string{"a", "b", "c"} {
		for _, name := range []string{"x", "y", "z"} {
			for _, hint := range []string{``, `"readOnlyHint":true`, `"destructiveHint":false`}[:1+r.IntN(3)] {
				offer.Tools = append(offer.Tools, tool(server, name+fmt.Sprint(len(hint)), hint))
			}
		}
	}
	for range 5000 {
		first, err := New(randomView(r, "first"))
		second, other := New(randomView(r, "second"))
		if err != nil || other != nil {
			t.Fatal(err, other)
		}
		one, two, both := &Set{views: []*View{first}}, &Set{views: []*View{second}}, &Set{views: []*View{first, second}}
		for _, tool := range offer.Tools {
			shown := both.Shows(tool)
			if shown != (one.Shows(tool) && two.Shows(tool)) {
				t.Fatalf("%+v and %+v: %s is shown: %t", first.View, second.View, tool.LongName(), shown)
			}
			if !shown && both.ShowsByName(tool.Server, tool.Name) || shown && !both.MayShow(tool.Server, tool.Name) {
				t.Fatalf("%+v and %+v: MayShow or ShowsByName contradicts Shows for %s", first.View, second.View, tool.LongName())
			}
		}
		narrowed, names := both.Narrow(&offer), map[string]bool{}
		for i, label := range narrowed.Labels() {
			if names[label.Name] || !strings.HasPrefix(label.Name, narrowed.Tools[i].Server+"__") {
				t.Fatalf("%+v and %+v: %s is listed as %s", first.View, second.View, narrowed.Tools[i].LongName(), label.Name)
			}
			names[label.Name] = true
		}
		if !slices.ContainsFunc(offer.Tools, both.Shows) && len(narrowed.Tools) > 0 {
			t.Fatalf("%+v and %+v: no tool is shown, but the offer still contains some", first.View, second.View)
		}
	}
}
