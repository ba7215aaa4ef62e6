package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

var agreements = flag.Int("agreements", 1000, "random cases of TestAllEndpointsAgreeOnWhatACallerSees")

// agreement is a server with a few apps, together with the callers and sessions that list and call its tools in every
// possible way.
type agreement struct {
	*testing.T
	url       string
	callers   []agreeing
	sessions  map[string]string // by token and path
	workspace string

	mu      sync.Mutex
	offered []string // to the model in the latest turn
}

// agreeing is a caller, with the token that identifies it.
type agreeing struct{ name, token string }

// endpoint is one way to list and call tools. An empty surface stands for the caller's own surface.
type endpoint struct {
	name string
	list func(who agreeing, view, surface string) []string
	call func(who agreeing, view, surface, tool, arguments string) outcome
}

// outcome is the outcome of a call as its caller sees it. In text, a placeholder replaces the tool's name.
type outcome struct {
	done bool
	text string
	raw  string
}

const (
	memberToken = "a-members-token-0123456789"
	adminToken  = "an-admins-token-0123456789"
	ownerToken  = "the-owners-token-0123456789"
)

func newAgreement(t *testing.T) *agreement {
	a := &agreement{T: t, sessions: map[string]string{}}
	model := httptest.NewServer(http.HandlerFunc(a.answerAsModel))
	t.Cleanup(model.Close)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	list := "tokens:\n"
	for token, subject := range map[string]string{memberToken: "member", adminToken: "admin", ownerToken: "owner"} {
		list += "  - {token: " + token + ", subject: " + subject + ", email: " + subject + "@example.com, expires: 2099-01-01T00:00:00Z}\n"
	}
	if err := os.WriteFile(tokens, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := "http: {port: 0}\nauth: {adapter: static, file: " + tokens + ", audience: any}\n" +
		"tools: {favourites: [a__x, '*__y', a__new], approve: ['c__z']}\nlimits: {conversations: 0, sessions: 1000}\nmcp: {maxSessions: 10000}\n" +
		"models: {default: 'openai:test-model', providers: {openai: {baseUrl: '" + model.URL + "/v1', apiKey: k}}}\napps:\n"
	changing := &mcp.Tool{Name: "z", Description: "as it was"}
	for _, name := range []string{"a", "b", "d"} {
		yaml += "  " + name + ": {url: '" + a.startApp(name, changing) + "'}\n"
	}
	s := newHome(t, yaml).mustStart()
	a.url = s.URL()
	var who struct{ Workspace struct{ ID string } }
	a.must("GET", "/v1/workspace", ownerToken, "", &who)
	for token, role := range map[string]string{memberToken: "member", adminToken: "admin"} {
		var person struct{ User struct{ ID string } }
		a.must("GET", "/v1/workspace", token, "", &person)
		a.must("POST", "/v1/workspaces/"+who.Workspace.ID+"/members", ownerToken, `{"user":"`+person.User.ID+`","role":"`+role+`"}`, nil)
	}
	a.workspace = who.Workspace.ID
	filtered := `{"mcpServers":{"c":{"url":"` + a.startApp("c", changing) + `","excludeTools":["y"]}}}`
	a.must("POST", "/v1/apps/import", ownerToken, filtered, nil)
	for _, name := range []string{"a", "b", "c", "d"} {
		testkit.Eventually(t, name+" runs", func() bool {
			var app struct{ Status string }
			status, raw := a.send("GET", "/v1/apps/"+name, ownerToken, "")
			return status == http.StatusOK && json.Unmarshal(raw, &app) == nil && app.Status == "running"
		})
	}
	changing.Description = "as it is now" // b__z is held back from here on
	a.must("POST", "/v1/apps/b/restart", ownerToken, "", nil)
	a.must("POST", "/v1/apps/d/stop", ownerToken, "", nil)
	a.addCallers()
	return a
}

// startApp serves an app with the tools x, y, z and onlyview, and returns its address. changing describes the tool z.
func (a *agreement) startApp(name string, changing *mcp.Tool) string {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
		for _, tool := range []*mcp.Tool{
			{Name: "x", Description: "Reads letters", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			{Name: "y", Description: "Writes letters"},
			{Name: "z", Description: changing.Description},
			{Name: "onlyview", Description: "Reads letters for the view", Meta: mcp.Meta{"ui": map[string]any{"visibility": []string{"app"}}}},
		} {
			mcp.AddTool(s, tool, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
			})
		}
		return s
	}, &mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	s := httptest.NewServer(handler)
	a.Cleanup(func() {
		s.CloseClientConnections() // the server keeps a connection open
		s.Close()
	})
	return s.URL
}

// addCallers adds users with each role, and API keys of these users with and without a view and a surface.
func (a *agreement) addCallers() {
	a.setView(core.View{Name: "gone"})
	a.setView(core.View{Name: "first"})
	for subject, token := range map[string]string{"member": memberToken, "admin": adminToken, "owner": ownerToken} {
		a.callers = append(a.callers, agreeing{subject, token})
		for _, view := range []string{"", "first", "gone"} {
			for _, surface := range []string{"", "search"} {
				body, _ := json.Marshal(map[string]string{"name": "k", "view": view, "surface": surface})
				var made struct{ Key string }
				a.must("POST", "/v1/keys", token, string(body), &made)
				a.callers = append(a.callers, agreeing{subject + "'s key for view " + view + " and surface " + surface, made.Key})
			}
		}
	}
	slices.SortFunc(a.callers, func(x, y agreeing) int { return strings.Compare(x.name, y.name) }) // so that a seed repeats the same callers
	a.must("DELETE", "/v1/views/gone", ownerToken, "", nil)
}

func (a *agreement) setView(v core.View) {
	body, err := json.Marshal(v)
	if err != nil {
		a.Fatal(err)
	}
	a.must("POST", "/v1/views", ownerToken, string(body), nil)
}

// send sends a request for the workspace and returns the response.
func (a *agreement) send(method, path, token, body string, headers ...string) (int, []byte) {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.Fatal(err)
	}
	headers = append(headers, "Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	if a.workspace != "" {
		headers = append(headers, "X-Workspace-Id", a.workspace)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		a.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		a.Fatal(err)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		a.sessions[token+" "+path] = id
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") && strings.HasPrefix(path, "/mcp") {
		raw = lastEvent(raw)
	}
	return response.StatusCode, raw
}

// lastEvent returns the data of the last event of a stream.
func lastEvent(stream []byte) (data []byte) {
	lines := bufio.NewScanner(bytes.NewReader(stream))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "data: "); ok && rest != "" {
			data = []byte(rest)
		}
	}
	return data
}

// must sends a request that must succeed, and decodes the response into to unless it is nil.
func (a *agreement) must(method, path, token, body string, to any) {
	a.Helper()
	status, raw := a.send(method, path, token, body)
	if status >= 300 || to != nil && json.Unmarshal(raw, to) != nil {
		a.Fatalf("%s %s %s: %d %s", method, path, body, status, raw)
	}
}

// endpoints returns all ways to list and call tools. Only /mcp has addresses of views.
func (a *agreement) endpoints() []endpoint {
	return []endpoint{
		a.mcp("/mcp with a session", a.inSession), a.mcp("/mcp without a session", a.stateless),
		{name: "/v1", list: func(who agreeing, _, _ string) []string {
			var all struct{ Tools []struct{ Name string } }
			a.must("GET", "/v1/tools", who.token, "", &all)
			var names []string
			for _, tool := range all.Tools {
				names = append(names, tool.Name)
			}
			return names
		}, call: func(who agreeing, _, _, tool, arguments string) outcome {
			status, raw := a.send("POST", "/v1/tools/call", who.token, `{"tool":"`+tool+`","arguments":`+arguments+`}`)
			var result struct{ IsError bool }
			return newOutcome(status == http.StatusOK && json.Unmarshal(raw, &result) == nil && !result.IsError, status, raw, tool)
		}},
	}
}

func (a *agreement) mcp(name string, send func(who agreeing, view, surface, method, params string) (int, []byte)) endpoint {
	return endpoint{name: name, list: func(who agreeing, view, surface string) []string {
		status, raw := send(who, view, surface, "tools/list", `{}`)
		var all struct {
			Result *struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal(raw, &all); err != nil || all.Result == nil {
			a.Fatalf("%s: tools/list for %s: %d %s", name, who.name, status, raw)
		}
		var names []string
		for _, tool := range all.Result.Tools {
			names = append(names, tool.Name)
		}
		return names
	}, call: func(who agreeing, view, surface, tool, arguments string) outcome {
		status, raw := send(who, view, surface, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
		var response struct{ Result *struct{ IsError bool } }
		done := json.Unmarshal(raw, &response) == nil && response.Result != nil && !response.Result.IsError
		return newOutcome(done, status, raw, tool)
	}}
}

// newOutcome describes a response. The response to a call through system__call_tool contains the name of the called
// tool.
func newOutcome(done bool, status int, raw []byte, tool string) outcome {
	return outcome{done, fmt.Sprintf("%d %s", status, strings.ReplaceAll(string(raw), tool, "TOOL")), string(raw)}
}

func (a *agreement) address(view string) string {
	if view == "" {
		return "/mcp/" + a.workspace
	}
	return "/mcp/" + a.workspace + "/v/" + view
}

func (a *agreement) inSession(who agreeing, view, surface, method, params string) (int, []byte) {
	path := a.address(view)
	headers := []string{"MCP-Protocol-Version", "2025-11-25"}
	if surface != "" {
		headers = append(headers, "X-Tools-Surface", surface)
	}
	key := who.token + " " + path
	if a.sessions[key] == "" {
		status, raw := a.send("POST", path, who.token, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if a.sessions[key] == "" {
			a.Fatalf("initialize for %s at %s: %d %s", who.name, path, status, raw)
		}
		a.send("POST", path, who.token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(headers, "Mcp-Session-Id", a.sessions[key])...)
	}
	return a.send("POST", path, who.token, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, append(headers, "Mcp-Session-Id", a.sessions[key])...)
}

func (a *agreement) stateless(who agreeing, view, surface, method, params string) (int, []byte) {
	const version = "2026-07-28"
	headers := []string{"MCP-Protocol-Version", version, "Mcp-Method", method}
	if surface != "" {
		headers = append(headers, "X-Tools-Surface", surface)
	}
	var named struct{ Name string }
	if _ = json.Unmarshal([]byte(params), &named); named.Name != "" {
		headers = append(headers, "Mcp-Name", named.Name)
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	if params != `{}` {
		meta += ","
	}
	return a.send("POST", a.address(view), who.token, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+meta+params[1:]+`}`, headers...)
}

// answerAsModel plays the model. It calls the tool that the user's message names, with the arguments that follow the
// name.
func (a *agreement) answerAsModel(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Messages []struct {
			Role    string
			Content any
		}
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Messages) == 0 {
		http.Error(w, "not a conversation", http.StatusBadRequest)
		return
	}
	last := in.Messages[len(in.Messages)-1]
	said := fmt.Sprint(last.Content)
	delta, reason := `{"role":"assistant","content":"ok"}`, "stop"
	if rest, ok := strings.CutPrefix(said, "call "); ok && last.Role == "user" {
		name, arguments, _ := strings.Cut(rest, " ")
		quoted, _ := json.Marshal(arguments)
		delta, reason = `{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"`+name+`","arguments":`+string(quoted)+`}}]}`, "tool_calls"
		a.mu.Lock()
		a.offered = nil
		for _, tool := range in.Tools {
			a.offered = append(a.offered, tool.Function.Name)
		}
		a.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, reason)
}

// chat makes a call in a new conversation. It also returns the tools that the model was offered. The members in
// settings are added to the request.
func (a *agreement) chat(who agreeing, tool, arguments, settings string) (offered []string, o outcome) {
	message, _ := json.Marshal("call " + tool + " " + arguments)
	status, raw := a.send("POST", "/v1/chat", who.token, `{"message":`+string(message)+settings+`}`)
	var answer struct {
		ConversationID string
		ToolCalls      []struct {
			OK     bool
			Output string
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil || status != http.StatusOK || len(answer.ToolCalls) != 1 {
		a.Fatalf("chat of %s about %s: %d %s", who.name, tool, status, raw)
	}
	a.must("DELETE", "/v1/conversations/"+answer.ConversationID, who.token, "", nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	called := answer.ToolCalls[0]
	return a.offered, newOutcome(called.OK, 0, []byte(called.Output), tool)
}

// madeUp returns the name of a tool that does not exist, in the same app as tool.
func madeUp(tool string) string {
	server, _, _ := strings.Cut(tool, "__")
	return server + "__nosuchtool"
}

// found returns the names in the result of a search.
func found(t *testing.T, o outcome) (names []string) {
	t.Helper()
	at := strings.LastIndex(o.raw, `{\"tools\":`)
	if at < 0 {
		if at = strings.LastIndex(o.raw, `{"tools":`); at < 0 {
			t.Fatalf("a search found %s", o.raw)
		}
		return namesIn(o.raw[at:])
	}
	var text string
	if end := strings.Index(o.raw[at:], `]}"`); end > 0 {
		_ = json.Unmarshal([]byte(`"`+o.raw[at:at+end]+`]}"`), &text)
	}
	return namesIn(text)
}

func namesIn(text string) (names []string) {
	var list struct{ Tools []struct{ Name string } }
	_ = json.NewDecoder(strings.NewReader(text)).Decode(&list)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// isForTools reports whether a tool only helps to use other tools. Searches do not find such tools.
func isForTools(name string) bool {
	return slices.Contains([]string{"system__search_tools", "system__call_tool", "system__read_result"}, name)
}

func isForView(name string) bool { return strings.HasSuffix(name, "__onlyview") }

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func without(names []string, drop func(string) bool) []string {
	return sorted(slices.DeleteFunc(slices.Clone(names), drop))
}

// All endpoints list, find and call the same tools. This holds for callers with each role, for keys and addresses that
// are bound to views, and on each surface. Any other tool is unknown everywhere. A call to a stopped app or to a tool
// that is held back explains the reason, but only to callers who would otherwise see the tool.
func TestAllEndpointsAgreeOnWhatACallerSees(t *testing.T) {
	a := newAgreement(t)
	r := rand.New(rand.NewPCG(31, 4)) //nolint:gosec // a seed makes it repeatable
	tools := []string{"a__x", "a__y", "a__z", "a__new", "a__onlyview", "b__x", "b__y", "b__z", "c__x", "c__y", "d__x", "none__x", "system__status", "system__search", "system__manage_users"}
	views := map[string]core.View{}
	for i := range *agreements {
		if i%1000 == 0 {
			t.Logf("%d cases", i)
		}
		if i%25 == 0 {
			for _, name := range []string{"first", "second", "bound"} {
				views[name] = randomView(r, name)
				a.setView(views[name])
			}
		}
		who, tool := a.callers[r.IntN(len(a.callers))], tools[r.IntN(len(tools))]
		view, surface := []string{"", "first", "second"}[r.IntN(3)], []string{"", "full", "search"}[r.IntN(3)]
		ways := a.endpoints()
		if view != "" {
			ways = ways[:2]
		}
		way := ways[r.IntN(len(ways))]
		a.check(ways[r.IntN(len(ways))], way, who, view, surface, tool)
		if view == "" && r.IntN(4) == 0 {
			a.checkChat(way, who, tool, r)
		}
		if t.Failed() {
			t.Fatalf("case %d: %s through %s, view %q, surface %q, tool %s; the views are %+v", i, who.name, way.name, view, surface, tool, slices.Collect(maps.Values(views)))
		}
	}
}

func randomView(r *rand.Rand, name string) core.View {
	rules := func() (all []core.ToolRule) {
		for range r.IntN(3) {
			one := core.ToolRule{App: []string{"", "a", "b"}[r.IntN(3)], Tool: []string{"", "a__*", "*__x", "*y", "system__*", "b__z", "d__*"}[r.IntN(7)]}
			if reads := r.IntN(2) == 0; r.IntN(3) == 0 || one == (core.ToolRule{}) {
				one.ReadOnly = &reads
			}
			all = append(all, one)
		}
		return all
	}
	v := core.View{Name: name, Include: rules(), Exclude: rules()}
	if r.IntN(2) == 0 {
		v.Tools = map[string]core.Relabel{"a__x": {Name: "new"}}
	}
	if name == "bound" && r.IntN(2) == 0 {
		v.Roles = []core.Role{core.RoleMember}
	}
	return v
}
