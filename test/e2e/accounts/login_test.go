package accounts

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// session opens an MCP session. The client calls visit to open pages for its user. If visit is nil, the client cannot
// open pages.
func session(t *testing.T, s *harness.Server, visit func(address string)) *mcp.ClientSession {
	t.Helper()
	o := &mcp.ClientOptions{}
	if visit != nil {
		o.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			visit(r.Params.URL)
			return &mcp.ElicitResult{Action: "accept"}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, o)
	opened, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp/me"}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// callWith calls a tool and returns the text of its result.
func callWith(t *testing.T, c *mcp.ClientSession, name string) (text string, failed bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range result.Content {
		if one, ok := part.(*mcp.TextContent); ok {
			text += one.Text
		}
	}
	return text, result.IsError
}

// unlink unlinks all accounts.
func unlink(t *testing.T, s *harness.Server) {
	t.Helper()
	for _, a := range accountsOf(t, s) {
		if deleted := s.Do(t, "DELETE", "/v1/accounts/"+a["id"].(string), nil); deleted.Status != http.StatusOK {
			t.Fatalf("%d %s", deleted.Status, deleted.Body)
		}
	}
}

func TestACallWaitsForALoginAndReachesTheAppOnce(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := serve(t, a)
	link(t, s, harness.NewBrowser(t), "") // the app's tools are known from now on

	t.Run("a client that can send its user to a page", func(t *testing.T) {
		unlink(t, s)
		before := a.Seen("change alice")
		c := session(t, s, func(address string) { agree(t, s, harness.NewBrowser(t), address) })
		if text, failed := callWith(t, c, "far__change"); text != "alice" || failed {
			t.Errorf("got %q", text)
		}
		if n := a.Seen("change alice") - before; n != 1 {
			t.Errorf("the app was called %d times", n)
		}
	})
	t.Run("a client that cannot open pages", func(t *testing.T) {
		unlink(t, s)
		before := a.Seen("change alice")
		c := session(t, s, nil)
		text, failed := callWith(t, c, "far__change")
		if !failed || strings.Count(text, s.URL+"/v1/accounts/link?") != 1 {
			t.Fatalf("the result must contain exactly one address: %q", text)
		}
		_, rest, _ := strings.Cut(text, "Open ")
		address, _, _ := strings.Cut(rest, " in a browser")
		agree(t, s, harness.NewBrowser(t), address)
		if text, failed := callWith(t, c, "far__change"); text != "alice" || failed {
			t.Errorf("after the login: %q", text)
		}
		if n := a.Seen("change alice") - before; n != 1 {
			t.Errorf("the app was called %d times", n)
		}
	})
	t.Run("a client without a session", func(t *testing.T) {
		unlink(t, s)
		before := a.Seen("change alice")
		var asked struct {
			Result struct {
				ResultType    string
				InputRequests map[string]struct{ Params struct{ Mode, URL string } }
			}
		}
		first := stateless(t, s, "")
		if err := json.Unmarshal([]byte(harness.LastMessage(first.Body)), &asked); err != nil || asked.Result.ResultType != "input_required" || len(asked.Result.InputRequests) != 1 {
			t.Fatalf("%d %s", first.Status, first.Body)
		}
		for name, request := range asked.Result.InputRequests {
			if request.Params.Mode != "url" {
				t.Errorf("asked for %+v", request)
			}
			agree(t, s, harness.NewBrowser(t), request.Params.URL)
			if again := stateless(t, s, fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept"}}`, name)); !strings.Contains(again.Body, `"text":"alice"`) {
				t.Errorf("%d %s", again.Status, again.Body)
			}
		}
		if n := a.Seen("change alice") - before; n != 1 {
			t.Errorf("the app was called %d times", n)
		}
	})
	t.Run("an app that wants more rights", func(t *testing.T) {
		old := map[string]bool{}
		for _, bearer := range a.Tokens() {
			old[bearer] = true
		}
		a.Lacking.Store(&old)
		before, asked := a.Seen("change alice"), 0
		c := session(t, s, func(address string) {
			asked++
			if !strings.Contains(address, "scope=tools") {
				t.Errorf("the address does not contain the scope: %s", address)
			}
			agree(t, s, harness.NewBrowser(t), address)
		})
		if text, failed := callWith(t, c, "far__change"); text != "alice" || failed || asked != 1 {
			t.Errorf("got %q after %d pages", text, asked)
		}
		if n := a.Seen("change alice") - before; n != 1 {
			t.Errorf("the app was called %d times", n)
		}
	})
}

// stateless calls far__change with MCP 2026-07-28, as a client that can open pages for its user.
func stateless(t *testing.T, s *harness.Server, more string) harness.Response {
	t.Helper()
	return statelessCall(t, s, `{"url":{}}`, more)
}

// statelessCall is like stateless for a client with the given elicitation capability.
func statelessCall(t *testing.T, s *harness.Server, elicitation, more string) harness.Response {
	t.Helper()
	return s.Do(t, "POST", "/mcp/me", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"far__change","arguments":{},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":`+elicitation+`}}`+more+`}}`),
		"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: far__change")
}

func TestAChatWaitsForALogin(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	p := testenv.StartModelProvider(t)
	s := serve(t, a, harness.Models(p, "anthropic"))
	link(t, s, harness.NewBrowser(t), "")
	unlink(t, s)
	harness.ScriptToolCall(t, p, "far_main__change", `{}`)
	questions, _, output := s.AnswerQuestions(t, func(q map[string]any) {
		address, _ := q["url"].(string)
		agree(t, s, harness.NewBrowser(t), address)
		s.Reply(t, q, `{"action":"accept"}`, 200, "accept")
	})
	if len(questions) != 1 || questions[0]["mode"] != "url" || questions[0]["server"] != "system" || !strings.Contains(output, "alice") || a.Seen("change alice") != 1 {
		t.Errorf("asked %v; the tool returned %s; the app was called %d times", questions, output, a.Seen("change alice"))
	}
}

func TestAccountsAreManagedByCommandsAndByATool(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := serve(t, a)
	b := harness.NewBrowser(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), harness.Binary(t), append(args, "--server", s.URL)...)
		cmd.Env = append(s.Environ, "ROPEWALK_HOME="+s.Home)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	link(t, s, b, "home")
	_, address, _ := strings.Cut(run("account", "link", "far", "--name", "work", "--wait", "0"), "http")
	agree(t, s, b, "http"+strings.TrimSpace(address))
	if out := run("account", "list"); !strings.Contains(out, "work") || !strings.Contains(out, "home") {
		t.Errorf("account list:\n%s", out)
	}
	run("account", "use", "far", "work")
	if out := run("tool", "call", "far_home__change"); !strings.Contains(out, "alice") {
		t.Errorf("tool call:\n%s", out)
	}
	listed, _ := s.Call(t, "system", "accounts", map[string]any{"action": "list"}).(map[string]any)
	if text := fmt.Sprint(listed["accounts"]); strings.Count(text, "default:true") != 1 || !strings.Contains(text, "default:true name:work") {
		t.Errorf("system__accounts says %s", text)
	}
	s.Call(t, "system", "accounts", map[string]any{"action": "unlink", "app": "far", "account": "home"})
	run("account", "unlink", "far", "work")
	if left := accountsOf(t, s); len(left) != 0 {
		t.Errorf("remaining: %v", left)
	}
	begun, _ := s.Call(t, "system", "accounts", map[string]any{"action": "link", "app": "far"}).(map[string]any)
	agree(t, s, b, begun["url"].(string))
	if !testkit.Within(harness.Timeout, func() bool { return len(accountsOf(t, s)) == 1 }) {
		t.Error("the account is not linked")
	}
}

func TestAnAccountIsLinkedWithACodeOnAnotherDevice(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := serve(t, a)
	begin := func(args ...string) (code string, end func() error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), harness.Binary(t), append([]string{"account", "link", "far", "--device", "--server", s.URL}, args...)...)
		cmd.Env = append(s.Environ, "ROPEWALK_HOME="+s.Home)
		var notes strings.Builder
		cmd.Stderr = &notes
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		address, _ := bufio.NewReader(out).ReadString('\n')
		return strings.TrimSpace(address), func() error {
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %s", err, notes.String())
			}
			return nil
		}
	}
	if address, end := begin(); address != "" || end() == nil {
		t.Errorf("without --yes, the command printed %q", address)
	}
	address, end := begin("--yes")
	if page := enterCode(t, address, "abort"); strings.Contains(page, "Success") {
		t.Errorf("declined: %s", page)
	}
	if err := end(); err == nil || !strings.Contains(err.Error(), "declined") {
		t.Errorf("the command exited with %v", err)
	}
	if list := accountsOf(t, s); len(list) > 0 {
		t.Errorf("the accounts: %v", list)
	}
	a.Bound.Store(true)
	address, end = begin("--yes", "--name", "far-away")
	enterCode(t, address, "confirm")
	if err := end(); err != nil {
		t.Errorf("the command exited with %v", err)
	}
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Do(t, "GET", "/v1/tools", nil).Body, "far__whoami") }) {
		t.Fatal("the tools of the app are not listed")
	}
	if got := s.Call(t, "far", "whoami", nil); got != "alice" {
		t.Errorf("the app sees %v", got)
	}
}

// enterCode opens the address of a code in another browser and answers with confirm or abort. It returns the last page.
func enterCode(t *testing.T, address, answer string) string {
	t.Helper()
	b := harness.NewBrowser(t)
	_, page := b.Read(t, address)
	post := func(more ...string) {
		t.Helper()
		fields := url.Values{}
		for _, field := range []string{"xsrf", "user_code"} {
			_, rest, _ := strings.Cut(page, `name="`+field+`" value="`)
			value, _, _ := strings.Cut(rest, `"`)
			fields.Set(field, value)
		}
		for _, field := range more {
			fields.Set(field, "yes")
		}
		_, page = b.Submit(t, harness.FormAction(page), fields)
	}
	post()
	post(answer)
	return page
}
