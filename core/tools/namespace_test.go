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
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
	toolschema "github.com/ropewalk/ropewalk/core/tools/schema"
)

type events struct{ all []core.Event }

func (e *events) Publish(one core.Event) { e.all = append(e.all, one) }

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

func newNamespace(y *fakeApps, e *events, f config.Features, own ...tools.System) *tools.Namespace {
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
	return tools.System{
		Name: name, AdminOnly: admin, Flags: flags,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Run: func(context.Context, core.Caller, json.RawMessage) (any, error) {
			return map[string]any{"done": name}, nil
		},
	}
}

func TestAToolIsListedAsItsAppWroteItExceptItsName(t *testing.T) {
	for name, raw := range map[string]string{
		"name first":         `{"name":"add","title":"T","x-unknown":{"b":1,"a":[1.0,2e3]},"inputSchema":{"type":"object","z":1,"a":2}}`,
		"name last":          `{"inputSchema":{"type":"object"},"name":"add"}`,
		"white space":        "{ \"title\" : \"T\" ,\n \"name\"\t:  \"add\" , \"inputSchema\":{} }",
		"name deeper down":   `{"_meta":{"name":"deep"},"name":"add","inputSchema":{"properties":{"name":{"type":"string"}}}}`,
		"escaped characters": `{"description":"\u00e9 \"name\":\"x\"","name":"add"}`,
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
		pending, err := n.Start(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: c.name})
		if err != nil || pending.Sent() {
			t.Errorf("%s was sent at once (%v)", c.name, err)
		}
		_, err = n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: c.name})
		if err == nil && c.want != "" || err != nil && core.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if len(y.Calls()) != 1 {
		t.Errorf("%d calls reached an app", len(y.Calls()))
	}
}

func TestACallOfAnAppThatBeganToRunAfterTheLookupIsMade(t *testing.T) {
	y := &fakeApps{result: `{"content":[]}`}
	n := newNamespace(y, &events{}, nil)
	pending, err := n.Start(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__add"})
	if err != nil || pending.Sent() {
		t.Fatalf("it was sent at once (%v)", err)
	}
	y.SetOffer("ws_a", &core.Offer{Tools: []core.Tool{tool("calc", "add", `{"name":"add"}`)}})
	if _, err := pending.Wait(t.Context()); err != nil || len(y.Calls()) != 1 {
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
		code     core.Code // "" when it is there
	}{
		"no flag, no role":          {system("s", false), nil, core.RoleMember, ""},
		"a flag that is on":         {system("s", false, "bundleManagement"), nil, core.RoleMember, ""},
		"a flag that is off":        {system("s", false, "bundleManagement"), off, core.RoleOwner, core.CodeFeatureDisabled},
		"one of two flags on":       {system("s", false, "bundleManagement", "other"), off, core.RoleMember, ""},
		"admin-only for a member":   {system("s", true), nil, core.RoleMember, core.CodeForbidden},
		"admin-only for nobody":     {system("s", true), nil, "", core.CodeForbidden},
		"admin-only for an admin":   {system("s", true), nil, core.RoleAdmin, ""},
		"admin-only for an owner":   {system("s", true), nil, core.RoleOwner, ""},
		"off, and for admins: flag": {system("s", true, "bundleManagement"), off, core.RoleMember, core.CodeFeatureDisabled},
	} {
		t.Run(name, func(t *testing.T) {
			n, who := newNamespace(&fakeApps{}, &events{}, c.features, c.own), caller("ws_a", c.role)
			_, err := n.Call(t.Context(), who, tools.Call{Name: "system__s"})
			if listed := len(n.List(who)) == 1; listed != (c.code == "") {
				t.Errorf("listed: %v", listed)
			}
			if c.code == "" && err != nil || c.code != "" && core.CodeOf(err) != c.code {
				t.Errorf("the call gives %v, want code %q", err, c.code)
			}
		})
	}
}

func TestACallReachesItsAppWithUnchangedArguments(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "a__b", `{"name":"a__b"}`)}}, result: `{"content":[],"x":1}`}
	n := newNamespace(y, &events{}, nil)
	got, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{
		Name: "calc__a__b", Arguments: json.RawMessage(`{"n": 1.0, "big":12345678901234567890}`), Meta: json.RawMessage(`{"progressToken":7}`),
	})
	if err != nil || string(got) != y.result {
		t.Errorf("the result came back as %s, %v", got, err)
	}
	want := `ws_a calc tools/call {"name":"a__b","arguments":{"n": 1.0, "big":12345678901234567890},"_meta":{"progressToken":7}}`
	if len(y.asked()) != 1 || y.asked()[0] != want {
		t.Errorf("the app was asked %q, want %q", y.asked(), want)
	}
}

func TestMarkedArgumentsAreFoundByTheFullNameAndPassedWithTheCall(t *testing.T) {
	marked := tool("calc", "add", `{"name":"add"}`)
	marked.Mirrors = []core.Mirror{{Header: "Region", Path: []string{"region"}}}
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {marked}}, result: `{}`}
	n := newNamespace(y, &events{}, nil)
	alice := caller("ws_a", core.RoleMember)
	if got := n.Mirrors(alice, tools.From{}, "calc__add"); !reflect.DeepEqual(got, marked.Mirrors) {
		t.Errorf("its marks are %v", got)
	}
	if got := n.Mirrors(caller("ws_b", core.RoleMember), tools.From{}, "calc__add"); got != nil {
		t.Errorf("in another workspace its marks are %v", got)
	}
	if _, err := n.Call(t.Context(), alice, tools.Call{Name: "calc__add"}); err != nil || !reflect.DeepEqual(y.Calls()[0].Mirrors, marked.Mirrors) {
		t.Errorf("the call has %v (%v)", y.Calls(), err)
	}
}

func TestAToolOfAnotherWorkspaceDoesNotExist(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add"}`)}}, result: `{}`}
	n := newNamespace(y, &events{}, nil)
	for _, name := range []string{"calc__add", "calc__none", "nobody__add", "add", "", "__", "calc__", "system__none"} {
		_, err := n.Call(t.Context(), caller("ws_b", core.RoleOwner), tools.Call{Name: name})
		if core.CodeOf(err) != core.CodeToolNotFound {
			t.Errorf("%q gives %v", name, err)
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
		paths             []string // of the violations; nil when there are none
	}{
		"fitting":                      {schema, `{"a":1}`, nil},
		"a required one missing":       {schema, `{}`, []string{""}},
		"a wrong type":                 {schema, `{"a":"x"}`, []string{"/a"}},
		"two at once":                  {schema, `{"a":"x","b":["y",3]}`, []string{"/a", "/b/1"}},
		"a name with a slash":          {schema, `{"a":1,"c/d":2}`, []string{"/c~1d"}},
		"no arguments":                 {schema, ``, []string{""}},
		"an app without a schema":      {`null`, `{"any":"thing"}`, nil},
		"a schema that is none":        {`{"type":"nonsense"}`, `{"any":"thing"}`, nil},
		"a schema that refers outside": {`{"$ref":"file:///etc/passwd"}`, `{"any":"thing"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "add", `{"name":"add","inputSchema":`+c.schema+`}`)}}, result: `{}`}
			_, err := newNamespace(y, &events{}, nil).Call(t.Context(), caller("ws_a", core.RoleMember),
				tools.Call{Name: "calc__add", Arguments: json.RawMessage(c.arguments), CheckInput: true})
			if c.paths == nil {
				if err != nil || len(y.asked()) != 1 {
					t.Errorf("it was refused: %v", err)
				}
				return
			}
			known, ok := errors.AsType[*core.Error](err)
			if !ok || known.Code != core.CodeInvalidInput || len(y.asked()) != 0 {
				t.Fatalf("it gives %v, and the app was asked %d times", err, len(y.asked()))
			}
			var got []string
			for _, v := range known.Details.(map[string]any)["errors"].([]toolschema.Violation) {
				got = append(got, v.Path)
				if v.Message == "" {
					t.Errorf("the violation at %q says nothing", v.Path)
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
		_, err := newNamespace(y, &events{}, nil).Call(t.Context(), caller("ws_a", core.RoleMember),
			tools.Call{Name: "calc__add", Arguments: json.RawMessage(arguments), CheckInput: true})
		if core.CodeOf(err) != core.CodeInvalidInput {
			t.Errorf("%s gives %v", arguments, err)
		}
	}
}

func TestDataChangedFollowsAnAgentsSuccessfulCallOfAToolThatMayChangeData(t *testing.T) {
	const writes, reads = `{"name":"t"}`, `{"name":"t","annotations":{"readOnlyHint":true}}`
	for name, c := range map[string]struct {
		raw, result string
		agent       bool
		err         error
		want        int
	}{
		"an agent's call":            {writes, `{"content":[]}`, true, nil, 1},
		"a person's call":            {writes, `{"content":[]}`, false, nil, 0},
		"a read-only tool":           {reads, `{"content":[]}`, true, nil, 0},
		"a tool that failed":         {writes, `{"content":[],"isError":true}`, true, nil, 0},
		"isError said, and false":    {writes, `{"isError": false}`, true, nil, 1},
		"isError inside the content": {writes, `{"content":[{"type":"text","text":"{\"isError\":true}"}]}`, true, nil, 1},
		"a call that did not arrive": {writes, ``, true, errors.New("gone"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := &events{}
			y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {tool("calc", "t", c.raw)}}, result: c.result, err: c.err}
			n := newNamespace(y, e, nil, system("s", false))
			_, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "calc__t", Agent: c.agent})
			if !errors.Is(err, c.err) {
				t.Fatalf("the call gives %v", err)
			}
			if len(e.all) != c.want {
				t.Fatalf("%d events, want %d", len(e.all), c.want)
			}
			if c.want == 0 {
				return
			}
			data := e.all[0].Data.(core.DataChanged)
			if e.all[0].Name != "data.changed" || e.all[0].Workspace != "ws_a" || data.Server != "calc" || data.Tool != "t" {
				t.Errorf("the event is %+v", e.all[0])
			}
			if at := time.Time(data.Timestamp); time.Since(at) > time.Minute || time.Since(at) < 0 {
				t.Errorf("its time is %v", at)
			}
		})
	}
}

func TestASystemToolNeverEmitsDataChanged(t *testing.T) {
	e := &events{}
	_, err := newNamespace(&fakeApps{}, e, nil, system("s", false)).Call(t.Context(), caller("ws_a", core.RoleOwner), tools.Call{Name: "system__s", Agent: true})
	if err != nil || len(e.all) != 0 {
		t.Errorf("it gives %v and %v", err, e.all)
	}
}

// manager is a manager of apps that remembers what it was asked.
type manager struct{ asked []string }

func (m *manager) List(string) []core.App {
	return []core.App{{Name: "calc", Status: core.StateRunning}}
}

func (m *manager) Install(_ context.Context, ws string, r source.Request) (core.App, error) {
	m.asked = append(m.asked, "install "+ws+" "+r.Name+r.Path+r.URL)
	return core.App{Name: "new"}, nil
}

func (m *manager) Uninstall(_ context.Context, ws, name string) (string, error) {
	m.asked = append(m.asked, "uninstall "+ws+" "+name)
	if name == "kept" {
		return "", core.Errorf(core.CodeProtected, "kept is protected")
	}
	return "/data", nil
}

func (m *manager) Start(_ context.Context, ws, name string) (core.App, error) {
	m.asked = append(m.asked, "start "+ws+" "+name)
	return core.App{Name: name, Status: core.StateRunning}, nil
}

func (m *manager) Stop(_ context.Context, ws, name string) (core.App, error) {
	m.asked = append(m.asked, "stop "+ws+" "+name)
	return core.App{Name: name, Status: core.StateStopped}, nil
}

func TestManageAppsDoesOnlyWhatTheCallerMayDo(t *testing.T) {
	admin, member := core.RoleAdmin, core.RoleMember
	for name, c := range map[string]struct {
		arguments string
		org, ws   core.Role
		asked     string    // "" when nothing must reach the manager
		code      core.Code // of a refusal that stays an error
		says      string    // in the result
	}{
		"install by name":              {`{"action":"install","bundle":"@a/b"}`, member, admin, "install ws_a @a/b", "", `"new"`},
		"install by path, org admin":   {`{"action":"install","path":"/p"}`, admin, admin, "install ws_a /p", "", `"new"`},
		"install by path, org member":  {`{"action":"install","path":"/p"}`, member, admin, "", core.CodeForbidden, ""},
		"install by a member":          {`{"action":"install","bundle":"@a/b"}`, admin, member, "", core.CodeForbidden, ""},
		"install from two sources":     {`{"action":"install","bundle":"@a/b","url":"http://x"}`, admin, admin, "", "", "bad_request"},
		"stop":                         {`{"action":"stop","name":"calc"}`, member, admin, "stop ws_a calc", "", "stopped"},
		"start":                        {`{"action":"start","name":"calc"}`, member, admin, "start ws_a calc", "", "running"},
		"uninstall":                    {`{"action":"uninstall","name":"calc"}`, member, admin, "uninstall ws_a calc", "", "dataPreserved"},
		"uninstall a protected one":    {`{"action":"uninstall","name":"kept"}`, member, admin, "uninstall ws_a kept", "", "protected"},
		"stop by a member":             {`{"action":"stop","name":"calc"}`, admin, member, "", core.CodeForbidden, ""},
		"stop nothing":                 {`{"action":"stop"}`, admin, admin, "", "", "name is missing"},
		"an action that is none":       {`{"action":"explode","name":"calc"}`, admin, admin, "", core.CodeInvalidInput, ""},
		"a field that is none":         {`{"action":"stop","nam":"calc"}`, admin, admin, "", core.CodeInvalidInput, ""},
		"an argument of another shape": {`{"action":"install","env":["A=1"]}`, admin, admin, "", core.CodeInvalidInput, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{}
			who := caller("ws_a", c.org)
			who.Workspace.Role = c.ws
			got, err := newNamespace(&fakeApps{}, &events{}, nil, tools.ManageApps(m)).Call(t.Context(), who,
				tools.Call{Name: "system__manage_apps", Arguments: json.RawMessage(c.arguments)})
			if strings.Join(m.asked, ",") != c.asked {
				t.Errorf("the apps were asked %q, want %q", m.asked, c.asked)
			}
			if c.code != "" && core.CodeOf(err) != c.code || c.code == "" && (err != nil || !strings.Contains(string(got), c.says)) {
				t.Errorf("it gives %s, %v", got, err)
			}
		})
	}
}

// registries are two registries, of which one is away.
type registries struct{}

func (registries) SearchBundles(_ context.Context, q tools.BundleQuery) ([]tools.Found, []string, error) {
	return []tools.Found{{Registry: "r", Name: "@a/" + q.Text, TrustScore: q.Limit}}, []string{"registry s could not be asked"}, nil
}

func TestSearchFindsToolsByTheirWordsAndBundlesInRegistries(t *testing.T) {
	y := &fakeApps{tools: map[string][]core.Tool{"ws_a": {
		tool("calc", "add", `{"name":"add","description":"Adds two numbers"}`),
		tool("calc", "mul", `{"name":"mul","description":"Multiplies numbers"}`),
		tool("files", "read", `{"name":"read","description":"Reads a file"}`),
	}}}
	for name, c := range map[string]struct {
		arguments string
		features  config.Features
		want      []string // in this order
		code      core.Code
	}{
		"a word of a description":              {`{"query":"numbers"}`, nil, []string{"calc__add", "calc__mul"}, ""},
		"a word of a name comes first":         {`{"query":"mul numbers"}`, nil, []string{"calc__mul", "calc__add"}, ""},
		"everything":                           {`{"query":"","limit":2}`, nil, []string{"calc__add", "calc__mul"}, ""},
		"nothing":                              {`{"query":"zebra"}`, nil, nil, ""},
		"registries":                           {`{"query":"x","scope":"registry","limit":3}`, nil, []string{`@a/x`, `"trustScore":3`, "could not be asked"}, ""},
		"tools while they are off":             {`{"query":"x"}`, config.Features{"toolDiscovery": false}, nil, core.CodeFeatureDisabled},
		"registries while they are off":        {`{"query":"x","scope":"registry"}`, config.Features{"bundleDiscovery": false}, nil, core.CodeFeatureDisabled},
		"tools while registries are off":       {`{"query":"read"}`, config.Features{"bundleDiscovery": false}, []string{"files__read"}, ""},
		"a scope that is none":                 {`{"query":"x","scope":"moon"}`, nil, nil, core.CodeInvalidInput},
		"more than a caller may ask at a time": {`{"query":"x","limit":1000}`, nil, nil, core.CodeInvalidInput},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(y, &events{}, c.features)
			n.Add(n.Search(registries{}))
			got, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "system__search", Arguments: json.RawMessage(c.arguments)})
			if core.CodeOf(err) != c.code && (err != nil || c.code != "") {
				t.Fatalf("it gives %v", err)
			}
			var result struct {
				StructuredContent json.RawMessage `json:"structuredContent"`
			}
			_ = json.Unmarshal(got, &result)
			at := 0
			for _, want := range c.want {
				i := strings.Index(string(result.StructuredContent[at:]), want)
				if i < 0 {
					t.Fatalf("%q is not there, or not in its place: %s", want, result.StructuredContent)
				}
				at += i
			}
			if c.want == nil && c.code == "" && string(result.StructuredContent) != `{"tools":[]}` {
				t.Errorf("it found %s", result.StructuredContent)
			}
		})
	}
}

func TestADiscoveryFlagThatIsOffLeavesTheSchemaOfSearchToo(t *testing.T) {
	for name, c := range map[string]struct {
		features config.Features
		scope    string // of the listed schema
		registry bool
	}{
		"both on":        {nil, `"enum":["tools","registry"]`, true},
		"registries off": {config.Features{"bundleDiscovery": false}, `"enum":["tools"]`, false},
		"tools off":      {config.Features{"toolDiscovery": false}, `"enum":["registry"]`, true},
		"both off":       {config.Features{"toolDiscovery": false, "bundleDiscovery": false}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(&fakeApps{}, &events{}, c.features)
			n.Add(n.Search(registries{}))
			raw := string(n.List(caller("ws_a", core.RoleMember))[0].Raw)
			if !strings.Contains(raw, c.scope) || strings.Contains(raw, `"scope"`) != (c.scope != "") || strings.Contains(raw, `"registry":{`) != c.registry {
				t.Errorf("%s", raw)
			}
		})
	}
}

func TestStatusAndListAppsDescribeTheCallersWorkspace(t *testing.T) {
	n := newNamespace(&fakeApps{}, &events{}, nil)
	n.Add(tools.ListApps(&manager{}), n.Status(&manager{}, "1.2.3", time.Now().Add(-time.Minute)))
	for name, want := range map[string][]string{
		"system__status":    {`"version":"1.2.3"`, `"uptime":60`, `"running":1`, `"totalTools":2`, `"ws_a"`},
		"system__list_apps": {`"name":"calc"`, `"status":"running"`},
	} {
		got, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		var result struct {
			StructuredContent json.RawMessage `json:"structuredContent"`
		}
		if err := json.Unmarshal(got, &result); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(result.StructuredContent), part) {
				t.Errorf("%s lacks %s: %s", name, part, result.StructuredContent)
			}
		}
	}
}
