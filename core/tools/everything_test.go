package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// records accepts installations and settings without storing them.
type records struct{ apps.Records }

func (records) AddInstallation(context.Context, core.Installation) error { return nil }
func (records) PutSetting(context.Context, string, string) error         { return nil }
func (records) PurgeUninstalled(context.Context, string, string) error   { return nil }

// everything returns a namespace with the conformance server of the MCP SDK, installed as a bundle.
func everything(t *testing.T) *tools.Namespace {
	t.Helper()
	dir := t.TempDir()
	server := filepath.Join(dir, "server")
	program, err := os.ReadFile(testenv.Executable(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server, program, 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf(`{"manifest_version":"0.3","name":"all","version":"1.0.0","description":"d","author":{"name":"a"},
		"server":{"type":"binary","entry_point":"server","mcp_config":{"command":%q,"args":[]}}}`, server)
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	manager := apps.New(apps.Options{Home: t.TempDir(), Records: records{}, Events: &events{}, Grace: time.Second})
	t.Cleanup(func() {
		if err := manager.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := manager.Install(t.Context(), "ws_a", source.Request{Path: dir}); err != nil {
		t.Fatal(err)
	}
	return tools.New(tools.Options{Apps: manager, Events: &events{}, Features: config.Features{}})
}

// human is a client that answers every kind of question, as a person would.
type human struct {
	mu     sync.Mutex
	asked  []string
	answer func(method string, params json.RawMessage) string
}

func (h *human) Ask(_ context.Context, q rpc.Question) (json.RawMessage, error) {
	method, params := q.Method, q.Params
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, method+" "+string(params))
	return json.RawMessage(h.answer(method, params)), nil
}

func accepting(content string) *human {
	return &human{answer: func(method string, _ json.RawMessage) string {
		switch method {
		case "elicitation/create":
			return `{"action":"accept","content":` + content + `}`
		case "sampling/createMessage":
			return `{"role":"assistant","content":{"type":"text","text":"a sample"},"model":"m"}`
		}
		return `{"roots":[{"uri":"file:///a"}]}`
	}}
}

const canAll = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

// visit is a session of the namespace. It collects the notifications that the session receives.
type visit struct {
	*tools.Session
	n     *tools.Namespace
	c     core.Caller
	heard chan rpc.Notification
}

func visitor(t *testing.T, n *tools.Namespace, id string) *visit {
	t.Helper()
	v := &visit{n: n, c: caller("ws_a", core.RoleMember), heard: make(chan rpc.Notification, 100)}
	v.Session = n.Open(v.c, tools.SessionOptions{ID: id, Capabilities: json.RawMessage(canAll), Notify: func(x rpc.Notification) { v.heard <- x }})
	t.Cleanup(func() { v.Close(context.Background()) })
	return v
}

func (v *visit) call(ctx context.Context, tool, arguments string, h *human, notify func(rpc.Notification)) (string, error) {
	call := tools.Call{Name: "all__" + tool, Arguments: json.RawMessage(arguments), Meta: json.RawMessage(`{"progressToken":"t"}`), Notify: notify, From: tools.From{Session: v.Session}}
	if h != nil {
		call.Asker = h
	}
	raw, _, err := v.n.Call(ctx, v.c, call)
	return string(raw), err
}

func TestEverythingThatTheConformanceServerOffersIsPassedOn(t *testing.T) {
	n := everything(t)
	t.Run("lists and answers", func(t *testing.T) { checkListsAndAnswers(t, n) })
	t.Run("questions", func(t *testing.T) { checkQuestions(t, n) })
	t.Run("notifications", func(t *testing.T) { checkNotifications(t, n) })
	t.Run("both kinds of revision", func(t *testing.T) { checkBothRevisions(t, n) })
	t.Run("the client that is asked", func(t *testing.T) { checkQuestionsReachTheirClients(t, n) })
}

func checkListsAndAnswers(t *testing.T, n *tools.Namespace) {
	c := caller("ws_a", core.RoleMember)
	if len(n.Prompts(c)) != 5 || len(n.Resources(c)) != 3 || len(n.Templates(c)) != 1 {
		t.Errorf("%d prompts, %d resources, %d templates", len(n.Prompts(c)), len(n.Resources(c)), len(n.Templates(c)))
	}
	for name, one := range map[string]struct {
		ask          func(context.Context, core.Caller, tools.Request) (json.RawMessage, error)
		params, want string
	}{
		"a prompt":     {n.GetPrompt, `{"name":"all__test_prompt_with_arguments","arguments":{"arg1":"left","arg2":"right"}}`, "left"},
		"a resource":   {n.ReadResource, `{"uri":"test://static-text"}`, "test://static-text"},
		"a template":   {n.ReadResource, `{"uri":"test://template/77/data"}`, "77"},
		"a completion": {n.Complete, `{"ref":{"type":"ref/prompt","name":"all__test_prompt_with_arguments"},"argument":{"name":"arg1","value":"p"}}`, `"values"`},
	} {
		got, err := one.ask(t.Context(), c, tools.Request{Params: json.RawMessage(one.params)})
		if err != nil || !strings.Contains(string(got), one.want) {
			t.Errorf("%s: %s (%v)", name, got, err)
		}
	}
}

func checkQuestions(t *testing.T, n *tools.Namespace) {
	v := visitor(t, n, "asks")
	for range 2 { // first the shared instance asks, then the session's own
		for tool, c := range map[string]struct{ arguments, content, question, answer string }{
			"test_elicitation":                       {`{"message":"who?"}`, `{"username":"ada"}`, `"message":"who?"`, "ada"},
			"test_elicitation_sep1330_enums":         {`{}`, `{"titledMulti":["value1"]}`, `"titledMulti":{"items":{"anyOf":[{"const":"value1","title":"First Option"}`, "titledMulti"},
			"test_sampling":                          {`{"prompt":"why?"}`, ``, `"text":"why?"`, "a sample"},
			"test_input_required_result_elicitation": {`{}`, `{"name":"Grace"}`, "What is your name?", "Hello, Grace!"},
		} {
			h := accepting(c.content)
			got, err := v.call(t.Context(), tool, c.arguments, h, nil)
			if err != nil || !strings.Contains(got, c.answer) || len(h.asked) != 1 || !strings.Contains(h.asked[0], c.question) {
				t.Errorf("%s: %s (%v); asked %q", tool, got, err, h.asked)
			}
		}
	}
}

func checkNotifications(t *testing.T, n *tools.Namespace) {
	v, other := visitor(t, n, "says"), visitor(t, n, "other")
	if err := v.SetLevel(t.Context(), "debug"); err != nil {
		t.Fatal(err)
	}
	var notes []string
	keep := func(x rpc.Notification) { notes = append(notes, x.Method+" "+string(x.Params)) }
	if _, err := v.call(t.Context(), "test_tool_with_progress", `{}`, nil, keep); err != nil || len(notes) != 3 || !strings.Contains(notes[0], `"progressToken":"t"`) {
		t.Errorf("progress arrived as %q (%v)", notes, err)
	}
	notes = nil
	if _, err := v.call(t.Context(), "test_tool_with_logging", `{}`, nil, keep); err != nil || len(notes) != 3 || !strings.Contains(notes[2], "Tool execution completed") {
		t.Errorf("log messages arrived as %q (%v)", notes, err)
	}
	if err := v.Subscribe(t.Context(), "test://watched-resource"); err != nil {
		t.Fatal(err)
	}
	select {
	case x := <-v.heard:
		if x.Method != "notifications/resources/updated" || !strings.Contains(string(x.Params), `"uri":"test://watched-resource"`) {
			t.Errorf("heard %s %s", x.Method, x.Params)
		}
	case <-time.After(20 * time.Second):
		t.Error("no update was received")
	}
	if len(other.heard) > 0 {
		t.Errorf("a client without a subscription received %v", <-other.heard)
	}
}

func checkBothRevisions(t *testing.T, n *tools.Namespace) {
	call := tools.Call{
		Name: "all__test_input_required_result_elicitation", From: tools.From{Stateless: true},
		Meta: json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`),
	}
	c := caller("ws_a", core.RoleMember)
	got, _, err := n.Call(t.Context(), c, call)
	if err != nil || !strings.Contains(string(got), `"resultType":"input_required"`) || !strings.Contains(string(got), `"user_name":{"method":"elicitation/create"`) {
		t.Errorf("a client of the new revision got %s (%v)", got, err)
	}
	call.InputResponses = json.RawMessage(`{"user_name":{"action":"accept","content":{"name":"Grace"}}}`)
	if got, _, err = n.Call(t.Context(), c, call); err != nil || !strings.Contains(string(got), "Hello, Grace!") || !strings.Contains(string(got), `"resultType":"complete"`) {
		t.Errorf("with the answer it got %s (%v)", got, err)
	}
	changed := make(chan string, 10)
	listener := n.Open(c, tools.SessionOptions{Notify: func(n rpc.Notification) { changed <- n.Method }})
	defer listener.Close(t.Context())
	call.Name, call.InputResponses = "all__test_trigger_prompt_change", nil
	if _, _, err := n.Call(t.Context(), c, call); err != nil {
		t.Fatal(err)
	}
	select {
	case method := <-changed:
		if method != "notifications/prompts/list_changed" {
			t.Errorf("got %s", method)
		}
	case <-time.After(time.Minute):
		t.Error("a change in the instance of the other revision was not reported")
	}
}

func checkQuestionsReachTheirClients(t *testing.T, n *tools.Namespace) {
	var working sync.WaitGroup
	for _, who := range []string{"alice", "bob"} {
		v := visitor(t, n, who)
		for i := range 25 {
			working.Go(func() {
				nonce := fmt.Sprintf("%s-%d", who, i)
				h := &human{answer: func(_ string, params json.RawMessage) string {
					var q struct{ Message string }
					_ = json.Unmarshal(params, &q)
					if !strings.HasPrefix(q.Message, who+"-") {
						t.Errorf("%s was asked %s", who, params)
					}
					return fmt.Sprintf(`{"action":"accept","content":{"username":%q}}`, q.Message)
				}}
				got, err := v.call(t.Context(), "test_elicitation", `{"message":"`+nonce+`"}`, h, nil)
				if err != nil || !strings.Contains(got, nonce+"]") {
					t.Errorf("%s got %s (%v)", nonce, got, err)
				}
			})
		}
	}
	working.Wait()
	if c := caller("ws_b", core.RoleMember); slices.ContainsFunc(n.List(c), func(l tools.Listed) bool { return l.Tool.Server == "all" }) {
		t.Error("another workspace sees the app")
	}
}
