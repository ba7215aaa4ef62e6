package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// keyTransport adds an API key to every request.
type keyTransport string

func (b keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connectAs opens a session of the official client at a path. The channel changed receives a value when the list of
// tools changes.
func connectAs(t *testing.T, s *harness.Server, path, key string) (_ *mcp.ClientSession, changed <-chan struct{}) {
	t.Helper()
	lists := make(chan struct{}, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "narrowed", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(_ context.Context, _ *mcp.ToolListChangedRequest) { lists <- struct{}{} },
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + path, HTTPClient: &http.Client{Transport: keyTransport(key)}}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, lists
}

// toolsOf returns the names of the tools that the session lists.
func toolsOf(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// withViews starts a server with two apps, a view that shows only one of them, and a key bound to the view.
func withViews(t *testing.T, options ...harness.Option) (s *harness.Server, owner, key string) {
	t.Helper()
	s = harness.Serve(t, append(options, harness.Env("SERVICE_API_KEY="+harness.APIKey))...)
	owner = "Authorization: Bearer " + harness.APIKey
	for _, name := range []string{"one", "two"} {
		if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, name, harness.Plain)}, owner); a.Status != 200 {
			t.Fatalf("install: %d %s", a.Status, a.Body)
		}
	}
	if a := s.Do(t, "POST", "/v1/views", `{"name":"few","include":[{"app":"one"}],"exclude":[{"tool":"*__grow"}],"tools":{"one__echo":{"name":"repeat","description":"Repeats"}}}`, owner); a.Status != 200 {
		t.Fatalf("view: %d %s", a.Status, a.Body)
	}
	key, _ = s.Do(t, "POST", "/v1/keys", `{"name":"k","view":"few"}`, owner).Object(t)["key"].(string)
	return s, owner, key
}

func TestAKeyBoundToAViewSeesNothingElse(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s, owner, key := withViews(t, harness.Models(p, "anthropic"))
	bearer := "Authorization: Bearer " + key
	seen := s.Do(t, "GET", "/v1/tools", nil, bearer)
	var names []string
	for _, tool := range seen.Object(t)["tools"].([]any) {
		names = append(names, tool.(map[string]any)["name"].(string))
	}
	if !slices.Contains(names, "one__repeat") || slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "one__") || name == "one__grow" }) {
		t.Fatalf("/v1/tools lists %v", names)
	}
	listed := strings.Join(names, " ")
	for _, path := range []string{"/mcp/me", "/mcp/" + harness.Workspace, "/mcp/me/v/few", "/mcp/" + harness.Workspace + "/v/few"} {
		session, _ := connectAs(t, s, path, key)
		if got := toolsOf(t, session); got != listed {
			t.Errorf("%s lists %s, want %s", path, got, listed)
		}
		_, hidden := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "two__echo", Arguments: map[string]any{}})
		_, unknown := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "two__none", Arguments: map[string]any{}})
		if hidden == nil || unknown == nil || strings.ReplaceAll(hidden.Error(), "two__echo", "two__none") != unknown.Error() {
			t.Errorf("%s: a call to a hidden tool returned %v, to an unknown tool %v", path, hidden, unknown)
		}
	}
	call := func(tool string) harness.Response {
		return s.Do(t, "POST", "/v1/tools/call", `{"tool":"`+tool+`","arguments":{"text":"x"}}`, bearer)
	}
	if hidden, unknown := call("two__echo"), call("two__none"); hidden.Status != 404 || strings.ReplaceAll(hidden.Body, "two__echo", "two__none") != unknown.Body {
		t.Errorf("/v1: a call to a hidden tool returned %d %s, to an unknown tool %s", hidden.Status, hidden.Body, unknown.Body)
	}
	if a := call("one__repeat"); a.Status != 200 {
		t.Errorf("a renamed tool: %d %s", a.Status, a.Body)
	}
	for request, want := range map[string]int{
		"GET /v1/views": 403, `POST /v1/views {"name":"few"}`: 403, `POST /v1/keys {"name":"other"}`: 403, "DELETE /v1/views/few": 403,
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		if a := s.Do(t, method, path, orNil(body), bearer); a.Status != want {
			t.Errorf("%s: %d %s", request, a.Status, a.Body)
		}
	}
	p.Say(t, `{"match":{},"response":{"content":"Ok."}}`)
	if a := s.Do(t, "POST", "/v1/chat", `{"message":"hello"}`, bearer); a.Status != 200 {
		t.Errorf("chat: %d %s", a.Status, a.Body)
	}
	offered := map[string]bool{}
	for _, asked := range p.Journal(t) {
		list, _ := asked.Body["tools"].([]any)
		for _, tool := range list {
			function, _ := tool.(map[string]any)["function"].(map[string]any)
			name, _ := function["name"].(string)
			offered[name] = name != "system__read_result" // it only reads results of the other tools
		}
	}
	maps.DeleteFunc(offered, func(_ string, listed bool) bool { return !listed })
	if got := strings.Join(slices.Sorted(maps.Keys(offered)), " "); got != strings.Join(slices.Sorted(slices.Values(names)), " ") {
		t.Errorf("the model was offered %s, want %s", got, listed)
	}
	if a := s.Do(t, "DELETE", "/v1/views/few", nil, owner); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", "/v1/tools", nil, bearer); a.Status != 200 || !strings.Contains(a.Body, `"tools":[]`) {
		t.Errorf("after the view was deleted, the key sees %d %s", a.Status, a.Body)
	}
}

func orNil(body string) any {
	if body == "" {
		return nil
	}
	return body
}

func TestClientsAreNotifiedWhenTheViewInTheirAddressChanges(t *testing.T) {
	t.Parallel()
	s, owner, bound := withViews(t)
	key, _ := s.Do(t, "POST", "/v1/keys", `{"name":"admin","role":"admin"}`, owner).Object(t)["key"].(string)
	session, changed := connectAs(t, s, "/mcp/"+harness.Workspace+"/v/few", key)
	whole, _ := connectAs(t, s, "/mcp/"+harness.Workspace, key)
	if few, all := toolsOf(t, session), toolsOf(t, whole); !strings.Contains(few, "one__repeat") || strings.Contains(few, "two__") || !strings.Contains(all, "two__echo") || strings.Contains(all, "repeat") {
		t.Fatalf("got %s with the view and %s without it", few, all)
	}
	events := s.Listen(t, "Authorization: Bearer "+bound)
	for _, name := range []string{"two__environment", "one__environment"} { // the next event belongs to the second call, because the first call has none
		if _, err := whole.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
	}
	if e := events.Next(t); !strings.HasPrefix(e, `data.changed {"server":"one"`) {
		t.Errorf("event %s", e)
	}
	if a := s.Do(t, "POST", "/v1/views", `{"name":"few","include":[{"tool":"two__echo"}]}`, owner); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if !testkit.Within(harness.Timeout, func() bool { return len(changed) > 0 }) {
		t.Error("the client was not notified that the view changed")
	}
	if got := toolsOf(t, session); got != "two__echo" {
		t.Errorf("the changed view lists %s", got)
	}
	for body, want := range map[string]int{
		`{"name":"few","include":[{}]}`: 400, `{"name":"No"}`: 400, `{"name":"x","default":"allow","include":[{"app":"one"}]}`: 400, `{"name":"x","tools":{"one__echo":{"name":"a b"}}}`: 400,
	} {
		if a := s.Do(t, "POST", "/v1/views", body, owner); a.Status != want {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	for body, want := range map[string]string{`{"name":"k","view":"none"}`: "no view with that name", `{"name":"k","view":"few","role":"admin"}`: "the role member"} {
		if a := s.Do(t, "POST", "/v1/keys", body, owner); a.Status != 400 || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if a := s.Do(t, "POST", "/mcp/"+harness.Workspace+"/v/none", `{}`, "Authorization: Bearer "+key, "Accept: application/json, text/event-stream"); a.Status != 404 {
		t.Errorf("a view that does not exist: %d %s", a.Status, a.Body)
	}
	var list struct {
		Views []struct {
			Name, Default string
			Declared      bool
		}
	}
	if err := json.Unmarshal([]byte(s.Do(t, "GET", "/v1/views", nil, owner).Body), &list); err != nil || len(list.Views) != 1 || list.Views[0].Name != "few" || list.Views[0].Default != "deny" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestARoleBoundToAViewSeesNothingElse(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Config(
		"views:\n  readers:\n    workspaces: ["+harness.Workspace+"]\n    roles: [member]\n    include: [{tool: '*__echo'}]\n  other: {exclude: [{app: system}]}\n"))
	owner := "Authorization: Bearer " + harness.APIKey
	if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": harness.GoBundle(t, "one", harness.Plain)}, owner); a.Status != 200 {
		t.Fatalf("install: %d %s", a.Status, a.Body)
	}
	for role, want := range map[string]string{"member": "one__echo", "admin": "one__echo one__"} {
		key, _ := s.Do(t, "POST", "/v1/keys", `{"name":"k","role":"`+role+`"}`, owner).Object(t)["key"].(string)
		session, _ := connectAs(t, s, "/mcp/me/v/other", key)
		if got := toolsOf(t, session); role == "member" && got != want || role == "admin" && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", role, got, want)
		}
	}
	if a := s.Do(t, "POST", "/v1/views", `{"name":"readers"}`, owner); a.Status != 409 {
		t.Errorf("a declared view was replaced: %d %s", a.Status, a.Body)
	}
}
