package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools"
)

// manager is a fake Manager that records its calls.
type manager struct{ asked []string }

func (m *manager) List(string) []core.App {
	return []core.App{{Name: "calc", Status: core.StateRunning, LastOutput: []string{"what it wrote"}}}
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

func TestManageAppsChecksTheCallersRights(t *testing.T) {
	admin, member := core.RoleAdmin, core.RoleMember
	for name, c := range map[string]struct {
		arguments string
		org, ws   core.Role
		asked     string    // the call that reaches the manager; "" for none
		code      core.Code // for a refusal that remains an error
		says      string    // contained in the result
	}{
		"install by name":               {`{"action":"install","bundle":"@a/b"}`, member, admin, "install ws_a @a/b", "", `"new"`},
		"install by path, org admin":    {`{"action":"install","path":"/p"}`, admin, admin, "install ws_a /p", "", `"new"`},
		"install by path, org member":   {`{"action":"install","path":"/p"}`, member, admin, "", core.CodeForbidden, ""},
		"install by a member":           {`{"action":"install","bundle":"@a/b"}`, admin, member, "", core.CodeForbidden, ""},
		"install from two sources":      {`{"action":"install","bundle":"@a/b","url":"http://x"}`, admin, admin, "", "", "bad_request"},
		"stop":                          {`{"action":"stop","name":"calc"}`, member, admin, "stop ws_a calc", "", "stopped"},
		"start":                         {`{"action":"start","name":"calc"}`, member, admin, "start ws_a calc", "", "running"},
		"uninstall":                     {`{"action":"uninstall","name":"calc"}`, member, admin, "uninstall ws_a calc", "", "dataPreserved"},
		"uninstall a protected one":     {`{"action":"uninstall","name":"kept"}`, member, admin, "uninstall ws_a kept", "", "protected"},
		"stop by a member":              {`{"action":"stop","name":"calc"}`, admin, member, "", core.CodeForbidden, ""},
		"stop without a name":           {`{"action":"stop"}`, admin, admin, "", "", "name is missing"},
		"an unknown action":             {`{"action":"explode","name":"calc"}`, admin, admin, "", core.CodeInvalidInput, ""},
		"an unknown field":              {`{"action":"stop","nam":"calc"}`, admin, admin, "", core.CodeInvalidInput, ""},
		"an argument of the wrong type": {`{"action":"install","env":["A=1"]}`, admin, admin, "", core.CodeInvalidInput, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &manager{}
			who := caller("ws_a", c.org)
			who.Workspace.Role = c.ws
			got, _, err := newNamespace(&fakeApps{}, &events{}, nil, tools.ManageApps(m)).Call(t.Context(), who,
				tools.Call{Name: "system__manage_apps", Arguments: json.RawMessage(c.arguments)})
			if strings.Join(m.asked, ",") != c.asked {
				t.Errorf("the apps received %q, want %q", m.asked, c.asked)
			}
			if c.code != "" && core.CodeOf(err) != c.code || c.code == "" && (err != nil || !strings.Contains(string(got), c.says)) {
				t.Errorf("it returned %s, %v", got, err)
			}
		})
	}
}

// registries are two registries, one of which is unavailable.
type registries struct{}

func (registries) SearchBundles(_ context.Context, q tools.BundleQuery) ([]tools.Found, []string, error) {
	return []tools.Found{{Registry: "r", Name: "@a/" + q.Text, TrustScore: q.Limit}}, []string{"registry s could not be searched"}, nil
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
		"a word in a description":                  {`{"query":"numbers"}`, nil, []string{"calc__mul", "calc__add"}, ""},
		"a word in a name comes first":             {`{"query":"mul numbers"}`, nil, []string{"calc__mul", "calc__add"}, ""},
		"everything":                               {`{"query":"","limit":2}`, nil, []string{"calc__add", "calc__mul"}, ""},
		"a limit written as a float":               {`{"query":"","limit":2.0}`, nil, []string{"calc__add", "calc__mul"}, ""},
		"nothing":                                  {`{"query":"zebra"}`, nil, nil, ""},
		"registries":                               {`{"query":"x","scope":"registry","limit":3}`, nil, []string{`@a/x`, `"trustScore":3`, "could not be searched"}, ""},
		"tools while tool discovery is off":        {`{"query":"x"}`, config.Features{"toolDiscovery": false}, nil, core.CodeFeatureDisabled},
		"registries while bundle discovery is off": {`{"query":"x","scope":"registry"}`, config.Features{"bundleDiscovery": false}, nil, core.CodeFeatureDisabled},
		"tools while bundle discovery is off":      {`{"query":"read"}`, config.Features{"bundleDiscovery": false}, []string{"files__read"}, ""},
		"an unknown scope":                         {`{"query":"x","scope":"moon"}`, nil, nil, core.CodeInvalidInput},
		"a limit above the maximum":                {`{"query":"x","limit":1000}`, nil, nil, core.CodeInvalidInput},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace(y, &events{}, c.features)
			n.Add(n.Search(registries{}))
			got, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: "system__search", Arguments: json.RawMessage(c.arguments)})
			if core.CodeOf(err) != c.code && (err != nil || c.code != "") {
				t.Fatalf("it returned %v", err)
			}
			var result struct {
				StructuredContent json.RawMessage `json:"structuredContent"`
			}
			_ = json.Unmarshal(got, &result)
			at := 0
			for _, want := range c.want {
				i := strings.Index(string(result.StructuredContent[at:]), want)
				if i < 0 {
					t.Fatalf("%q is missing or in the wrong place: %s", want, result.StructuredContent)
				}
				at += i
			}
			if c.want == nil && c.code == "" && string(result.StructuredContent) != `{"tools":[]}` {
				t.Errorf("the search found %s", result.StructuredContent)
			}
		})
	}
}

func TestTheSearchSchemaLeavesOutScopesWhoseFlagsAreOff(t *testing.T) {
	for name, c := range map[string]struct {
		features config.Features
		scope    string // the scope of the listed schema
		registry bool
	}{
		"both flags on":  {nil, `"enum":["tools","registry"]`, true},
		"registries off": {config.Features{"bundleDiscovery": false}, `"enum":["tools"]`, false},
		"tools off":      {config.Features{"toolDiscovery": false}, `"enum":["registry"]`, true},
		"both flags off": {config.Features{"toolDiscovery": false, "bundleDiscovery": false}, "", false},
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

func TestOnlyAppManagersReadAnAppsOutputInTheList(t *testing.T) {
	n := newNamespace(&fakeApps{}, &events{}, nil)
	n.Add(tools.ListApps(&manager{}))
	for role, want := range map[core.Role]bool{core.RoleMember: false, core.RoleAdmin: true} {
		c := caller("ws_a", role)
		c.Workspace.Role = role
		got, _, err := n.Call(t.Context(), c, tools.Call{Name: "system__list_apps"})
		if err != nil || strings.Contains(string(got), "what it wrote") != want {
			t.Errorf("%s: %s, %v", role, got, err)
		}
	}
}

func TestStatusAndListAppsDescribeTheCallersWorkspace(t *testing.T) {
	n := newNamespace(&fakeApps{}, &events{}, nil)
	n.Add(tools.ListApps(&manager{}), n.Status(&manager{}, "1.2.3", time.Now().Add(-time.Minute)))
	for name, want := range map[string][]string{
		"system__status":    {`"version":"1.2.3"`, `"uptime":60`, `"running":1`, `"totalTools":2`, `"ws_a"`},
		"system__list_apps": {`"name":"calc"`, `"status":"running"`},
	} {
		got, _, err := n.Call(t.Context(), caller("ws_a", core.RoleMember), tools.Call{Name: name})
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

// In JSON Schema, 2.0 is an integer.
func TestArgumentsMayHaveAnIntegerWithAFraction(t *testing.T) {
	var in struct {
		Limit int             `json:"limit"`
		Name  string          `json:"name"`
		Raw   json.RawMessage `json:"raw"`
	}
	if err := tools.Arguments(json.RawMessage(`{"limit":2.0,"name":"2.0","raw":{"a":2.0}}`), &in); err != nil || in.Limit != 2 || in.Name != "2.0" || string(in.Raw) != `{"a":2.0}` {
		t.Errorf("%+v, %v", in, err)
	}
	err := tools.Arguments(json.RawMessage(`{"limit":1e300}`), &in)
	if core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(err.Error(), "arguments.limit cannot be number 1e300") {
		t.Errorf("a number that is too large: %v", err)
	}
}
