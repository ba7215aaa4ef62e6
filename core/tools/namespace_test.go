package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
	toolschema "github.com/ropewalk/ropewalk/core/tools/schema"
	"github.com/ropewalk/ropewalk/internal/testkit/fakes"
)

type events = fakes.Events

func tool(server, name, raw string) core.Tool {
	t := core.Tool{Server: server, Name: name, Raw: json.RawMessage(raw)}
	var fields struct {
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
	}
	_ = json.Unmarshal(t.Raw, &fields)
	t.Schema, t.ReadOnly = fields.InputSchema, fields.Annotations.ReadOnlyHint
	return t
}

func caller(workspace string, role core.Role) core.Caller {
	return core.Caller{
		Identity:  core.Identity{Issuer: "i", Subject: "s", User: core.User{OrgRole: role}},
		Workspace: core.Workspace{ID: workspace, Role: core.RoleMember},
	}
}

func newNamespace(y tools.Apps, e *events, f config.Features, own ...tools.System) *tools.Namespace {
	n := tools.New(tools.Options{Apps: y, Events: e, Features: f, Logger: hclog.NewNullLogger()})
	n.Add(own...)
	return n
}

func names(listed []tools.Listed) []string {
	var all []string
	for _, l := range listed {
		all = append(all, l.Name)
	}
	return all
}

func system(name string, admin bool, flags ...string) tools.System {
	requirement := core.Requirement{Flags: flags}
	if admin {
		requirement.Role = core.OrganizationAdmin
	}
	return tools.System{
		Name: name, Requirement: requirement,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Run: func(context.Context, core.Caller, json.RawMessage) (any, error) {
			return map[string]any{"done": name}, nil
		},
	}
}

func TestAToolIsListedAsItsAppWroteItExceptForItsName(t *testing.T) {
	for name, raw := range map[string]string{
		"name first":                  `{"name":"add","title":"T","x-unknown":{"b":1,"a":[1.0,2e3]},"inputSchema":{"type":"object","z":1,"a":2}}`,
		"name last":                   `{"inputSchema":{"type":"object"},"name":"add"}`,
		"white space before the name": "{ \"title\" : \"T\" ,\n \"name\"\t:  \"add\" , \"inputSchema\":{} }",
		"name at a deeper level":      `{"_meta":{"name":"deep"},"name":"add","inputSchema":{"properties":{"name":{"type":"string"}}}}`,
		"escaped characters":          `{"description":"\u00e9 \"name\":\"x\"","name":"add"}`,
	} {
		t.Run(name, func(t *testing.T) {
			y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", raw)}}}
			got := newNamespace(y, &events{}, nil).List(caller("ws_a", core.RoleMember))
			want := strings.Replace(raw, `"add"`, `"calc__add"`, 1)
			if len(got) != 1 || string(got[0].Raw) != want {
				t.Errorf("listed %+v, want %s", got, want)
			}
		})
	}
}

func TestACallWaitsForAnAppWhoseToolsAreNotKnownYet(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`, late: map[string][]core.Tool{
		"slow": {tool("slow", "add", `{"name":"add"}`)}, "slower": nil, "other": {tool("other", "sub", `{"name":"sub"}`)},
	}}
	n := newNamespace(y, &events{}, nil)
	for _, c := range []struct {
		name string
		want core.Code
	}{
		{"slow__add", ""}, {"slow__none", core.CodeToolNotFound}, {"slower__add", core.CodeUnavailable},
		{"other__add", core.CodeToolNotFound}, {"none__add", core.CodeToolNotFound}, {"add", core.CodeToolNotFound},
	} {
		_, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: c.name})
		if err == nil && c.want != "" || err != nil && core.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if len(y.Calls()) != 1 {
		t.Errorf("%d calls reached an app", len(y.Calls()))
	}
}

// startsWhenAwaited is an app that starts running as soon as something waits for it.
type startsWhenAwaited struct{ *fakeApps }

func (s startsWhenAwaited) AwaitOffer(context.Context, string, string) error {
	s.SetOffer("ws_a", &core.Offer{Tools: []core.Tool{tool("calc", "add", `{"name":"add"}`)}})
	return nil
}

func TestACallToAnAppThatStartedAfterTheLookupIsMade(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`}
	n := newNamespace(startsWhenAwaited{y}, &events{}, nil)
	if _, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__add"}); err != nil || len(y.Calls()) != 1 {
		t.Errorf("%v; %d calls reached an app", err, len(y.Calls()))
	}
}

func TestToolsAreOrderedByServerNameThenAsTheAppListsThem(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {
		tool("alpha", "z", `{"name":"z"}`), tool("alpha", "a", `{"name":"a"}`), tool("zulu", "m", `{"name":"m"}`),
	}}}
	got := names(newNamespace(y, &events{}, nil, system("status", false), system("about", false)).List(caller("ws_a", core.RoleMember)))
	want := []string{"alpha__z", "alpha__a", "system__status", "system__about", "zulu__m"}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func TestListAndCallApplyTheSameFilters(t *testing.T) {
	off := config.Features{"bundleManagement": false}
	for name, c := range map[string]struct {
		own      tools.System
		features config.Features
		role     core.Role
		code     core.Code // "" if the tool is available
	}{
		"no flag, no role":                              {system("s", false), nil, core.RoleMember, ""},
		"a flag that is on":                             {system("s", false, "bundleManagement"), nil, core.RoleMember, ""},
		"a flag that is off":                            {system("s", false, "bundleManagement"), off, core.RoleOwner, core.CodeFeatureDisabled},
		"one of two flags on":                           {system("s", false, "bundleManagement", "other"), off, core.RoleMember, ""},
		"admin-only for a member":                       {system("s", true), nil, core.RoleMember, core.CodeForbidden},
		"admin-only for a caller without a role":        {system("s", true), nil, "", core.CodeForbidden},
		"admin-only for an admin":                       {system("s", true), nil, core.RoleAdmin, ""},
		"admin-only for an owner":                       {system("s", true), nil, core.RoleOwner, ""},
		"admin-only and off: the flag takes precedence": {system("s", true, "bundleManagement"), off, core.RoleMember, core.CodeFeatureDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			n, who := newNamespace(&fakeApps{}, &events{}, c.features, c.own), caller("ws_a", c.role)
			_, _, err := n.Call(t.Context(), who, tools.Call{Name: "system__s"})
			if listed := len(n.List(who)) == 1; listed != (c.code == "") {
				t.Errorf("listed: %v", listed)
			}
			if c.code == "" && err != nil || c.code != "" && core.CodeOf(err) != c.code {
				t.Errorf("the call returned %v, want code %q", err, c.code)
			}
		})
	}
}

func TestAnAppReceivesTheArgumentsUnchanged(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "a__b", `{"name":"a__b"}`)}}, result: `{"content":[],"x":1}`}
	n := newNamespace(y, &events{}, nil)
	got, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{
		Name: "calc__a__b", Arguments: json.RawMessage(`{"n": 1.0, "big":12345678901234567890}`), Meta: json.RawMessage(`{"progressToken":7}`),
	})
	if err != nil || string(got) != y.result {
		t.Errorf("the result came back as %s, %v", got, err)
	}
	want := `ws_a calc tools/call {"name":"a__b","arguments":{"n": 1.0, "big":12345678901234567890},"_meta":{"progressToken":7}}`
	if len(y.asked()) != 1 || y.asked()[0] != want {
		t.Errorf("the app received %q, want %q", y.asked(), want)
	}
}

func TestAnnotatedArgumentsAreFoundByTheFullNameAndPassedWithTheCall(t *testing.T) {
	marked := tool("calc", "add", `{"name":"add"}`)
	marked.Mirrors = []core.Mirror{{Header: "Region", Path: []string{"region"}}}
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {marked}}, result: `{}`}
	n := newNamespace(y, &events{}, nil)
	alice := caller("ws_a", core.RoleMember)
	if got := n.Mirrors(alice, tools.From{}, "calc__add"); !reflect.DeepEqual(got, marked.Mirrors) {
		t.Errorf("its annotated arguments are %v", got)
	}
	if got := n.Mirrors(caller("ws_b", core.RoleMember), tools.From{}, "calc__add"); got != nil {
		t.Errorf("in another workspace, its annotated arguments are %v", got)
	}
	if _, _, err := n.Call(t.Context(), alice, tools.Call{Name: "calc__add"}); err != nil || !reflect.DeepEqual(y.Calls()[0].Mirrors, marked.Mirrors) {
		t.Errorf("the call has %v (%v)", y.Calls(), err)
	}
}

func TestAnotherWorkspacesToolDoesNotExist(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add"}`)}}, result: `{}`}
	n := newNamespace(y, &events{}, nil)
	for _, name := range []string{"calc__add", "calc__none", "nobody__add", "add", "", "__", "calc__", "system__none"} {
		_, _, err := n.Call(t.Context(), caller("ws_b", core.RoleOwner), tools.Call{Name: name})
		if core.CodeOf(err) != core.CodeToolNotFound {
			t.Errorf("%q returned %v", name, err)
		}
	}
	if len(y.asked()) != 0 {
		t.Errorf("an app was called: %v", y.asked())
	}
}

func TestArgumentsAreCheckedAgainstTheSchemaBeforeTheCall(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"array","items":{"type":"string"}},"c/d":{"type":"string"}},"required":["a"]}`
	for name, c := range map[string]struct {
		schema, arguments string
		paths             []string // the paths of the violations; nil if there are none
	}{
		"valid arguments":                     {schema, `{"a":1}`, nil},
		"a missing required property":         {schema, `{}`, []string{""}},
		"an invalid type":                     {schema, `{"a":"x"}`, []string{"/a"}},
		"two violations at once":              {schema, `{"a":"x","b":["y",3]}`, []string{"/a", "/b/1"}},
		"a name with a slash":                 {schema, `{"a":1,"c/d":2}`, []string{"/c~1d"}},
		"no arguments":                        {schema, ``, []string{""}},
		"an app without a schema":             {`null`, `{"any":"thing"}`, nil},
		"an invalid schema":                   {`{"type":"nonsense"}`, `{"any":"thing"}`, nil},
		"a schema with an external reference": {`{"$ref":"file:///etc/passwd"}`, `{"any":"thing"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add","inputSchema":`+c.schema+`}`)}}, result: `{}`}
			_, _, err := newNamespace(y, &events{}, nil).Call(t.Context(), caller("ws_a", core.RoleMember),
				tools.Call{Name: "calc__add", Arguments: json.RawMessage(c.arguments), CheckInput: true})
			if c.paths == nil {
				if err != nil || len(y.asked()) != 1 {
					t.Errorf("the call was refused: %v", err)
				}
				return
			}
			known, ok := errors.AsType[*core.Error](err)
			if !ok || known.Code != core.CodeInvalidInput || len(y.asked()) != 0 {
				t.Fatalf("the call returned %v, and the app received %d requests", err, len(y.asked()))
			}
			var got []string
			for _, v := range known.Details.(map[string]any)["errors"].([]toolschema.Violation) {
				got = append(got, v.Path)
				if v.Message == "" {
					t.Errorf("the violation at %q has no message", v.Path)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.paths) {
				t.Errorf("violations at %q, want %q", got, c.paths)
			}
		})
	}
}

func TestArgumentsThatAreNotAnObjectAreRefused(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add"}`)}}}
	for _, arguments := range []string{`[]`, `"x"`, `1`, `{`} {
		_, _, err := newNamespace(y, &events{}, nil).Call(t.Context(), caller("ws_a", core.RoleMember),
			tools.Call{Name: "calc__add", Arguments: json.RawMessage(arguments), CheckInput: true})
		if core.CodeOf(err) != core.CodeInvalidInput {
			t.Errorf("%s returned %v", arguments, err)
		}
	}
}

func TestDataChangedFollowsAnAgentsSuccessfulCallToAToolThatMayChangeData(t *testing.T) {
	const writes, reads = `{"name":"t"}`, `{"name":"t","annotations":{"readOnlyHint":true}}`
	for name, c := range map[string]struct {
		raw, result string
		agent       bool
		err         error
		want        int
	}{
		"an agent's call":                   {writes, `{"content":[]}`, true, nil, 1},
		"a person's call":                   {writes, `{"content":[]}`, false, nil, 0},
		"a read-only tool":                  {reads, `{"content":[]}`, true, nil, 0},
		"a tool that failed":                {writes, `{"content":[],"isError":true}`, true, nil, 0},
		"isError present and false":         {writes, `{"isError": false}`, true, nil, 1},
		"isError inside the content":        {writes, `{"content":[{"type":"text","text":"{\"isError\":true}"}]}`, true, nil, 1},
		"a call that did not reach the app": {writes, ``, true, errors.New("gone"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := &events{}
			y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "t", c.raw)}}, result: c.result, err: c.err}
			n := newNamespace(y, e, nil, system("s", false))
			_, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__t", Agent: c.agent})
			if !errors.Is(err, c.err) {
				t.Fatalf("the call returned %v", err)
			}
			if len(e.All()) != c.want {
				t.Fatalf("%d events, want %d", len(e.All()), c.want)
			}
			if c.want == 0 {
				return
			}
			data := e.All()[0].Data.(core.DataChanged)
			if e.All()[0].Name != "data.changed" || e.All()[0].Workspace != "ws_a" || data.Server != "calc" || data.Tool != "t" {
				t.Errorf("the event is %+v", e.All()[0])
			}
			if at := time.Time(data.Timestamp); time.Since(at) > time.Minute || time.Since(at) < 0 {
				t.Errorf("the event's time is %v", at)
			}
		})
	}
}

func TestASystemToolNeverEmitsDataChanged(t *testing.T) {
	e := &events{}
	_, _, err := newNamespace(&fakeApps{}, e, nil, system("s", false)).Call(t.Context(), caller("ws_a", core.RoleOwner), tools.Call{Name: "system__s", Agent: true})
	if err != nil || len(e.All()) != 0 {
		t.Errorf("the call returned %v and published %v", err, e.All())
	}
}
