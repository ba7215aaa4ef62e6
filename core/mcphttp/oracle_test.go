package mcphttp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// oracle starts the SDK's handler on net/http, with tools that behave like fakeNamespace's tools. The endpoint under
// test must respond in the same way, unless docs/api.md specifies otherwise.
func oracle(t *testing.T) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "ropewalk", Version: "1.2.3"}, &mcp.ServerOptions{SupportedProtocolVersions: revisions()})
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "demo__plain", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "plain"}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "demo__fail", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32042, Message: "open the page", Data: json.RawMessage(`{"elicitations":[{"n":12345678901234567890}]}`)}
	})
	s.AddTool(&mcp.Tool{Name: "demo__progress", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 1.5, Message: "alice/ws_one"})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "plain"}}}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

// response holds the messages of a server's response, which arrived in a stream or in a plain body.
type response struct {
	Status   int
	Session  bool
	Messages []any
	IDs      []string // the messages' IDs, as written
	Text     string   // the body, if it is not JSON
}

// probe is one request, to an open session unless bare is set.
type probe struct {
	name    string
	method  string
	body    string
	version string // the session's revision; 2025-11-25 by default
	bare    bool
	header  []string
	differs string // why this endpoint's response differs; "" if it must be the same
}

func probes() []probe {
	spec, text := "docs/api.md defines the status:", "refusals are JSON-RPC errors, so that clients show them; the SDK responds with plain text"
	own := "instructions, title and capabilities are this server's own"
	rule := "docs/api.md: initialize requires these fields; the SDK opens a session without them"
	return []probe{
		{name: "ping", body: ping},
		{name: "a plain call", body: callBody(1, "demo__plain", "{}")},
		{name: "a call with progress", body: progressBody(4, "tok", 3)},
		{name: "an error with data", body: callBody(1, "demo__fail", "{}")},
		{name: "a string id", body: callBody("abc", "demo__plain", "{}")},
		{name: "a notification", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
		{name: "a cancellation of an unknown request", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`},
		{name: "a response to an unknown request", body: `{"jsonrpc":"2.0","id":99,"result":{}}`},
		{name: "initialize again", body: hello("2025-11-25"), differs: "0 is not a JSON-RPC error code, and only the first initialize returns a session id"},
		{name: "initialize", bare: true, body: hello("2025-06-18"), differs: own},
		{name: "initialize without params", bare: true, body: `{"jsonrpc":"2.0","id":0,"method":"initialize"}`, differs: rule},
		{name: "initialize with empty params", bare: true, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`, differs: rule},
		{name: "initialize without capabilities", bare: true, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"x","version":"1"}}}`, differs: rule},
		{name: "initialize without a name", bare: true, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, differs: rule},
		{name: "initialize without a revision", bare: true, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, differs: rule},
		{name: "initialize with a revision that is not text", bare: true, body: `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":5,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, differs: rule},
		{name: "initialize with an unknown revision", bare: true, body: hello("2099-01-01"), differs: own},
		{name: "a request in the newer revision", body: strings.Replace(callBody(1, "demo__plain", "{}"), `"params":{`, `"params":{`+statelessMeta("")+`,`, 1), differs: "this revision is supported; the mistake is the header, which is missing or has another one"},
		{name: "set the log level", body: `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`},
		{name: "a batch before 2025-06-18", version: "2025-03-26", body: `[` + ping + `,` + callBody(8, "demo__plain", "{}") + `]`},
		{name: "a batch of one", version: "2025-03-26", body: `[` + ping + `]`},
		{name: "a call with broken params", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, differs: "the code is the same; the SDK's message mentions its own types"},
		{name: "DELETE", method: "DELETE", differs: "docs/api.md: 200; the SDK returns 204"},
		{name: "GET and POST both refuse PUT", method: "PUT"},
		{name: "POST with plain text", body: ping, header: []string{"Content-Type: text/plain"}, differs: text},
		{name: "Accept with only JSON", body: ping, header: []string{"Accept: application/json"}, differs: spec + " 406; the SDK returns 400"},
		{name: "Accept with anything", body: ping, header: []string{"Accept: */*"}},
		{name: "an unknown revision", body: ping, header: []string{"Mcp-Protocol-Version: 1999-01-01"}, differs: text},
		{name: "a supported revision", body: ping, header: []string{"Mcp-Protocol-Version: 2025-06-18"}},
		{name: "an unknown session", body: ping, header: []string{"Mcp-Session-Id: nobody"}, differs: "docs/api.md defines the body"},
		{name: "GET without a session", method: "GET", bare: true, differs: text},
		{name: "DELETE without a session", method: "DELETE", bare: true, differs: text},
		{name: "GET that accepts only JSON", method: "GET", header: []string{"Accept: application/json"}, differs: spec + " 406; the SDK returns 400"},
		{name: "a request without a session", bare: true, body: ping, differs: spec + " 400; the SDK opens a session that nobody requested"},
		{name: "not JSON", body: `{`, differs: text},
		{name: "an empty body", body: ``, differs: text},
		{name: "an unknown method", body: `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, differs: "a request with an id gets a JSON-RPC error, as on every other transport; the SDK returns 400"},
		{name: "an unknown notification", body: `{"jsonrpc":"2.0","method":"notifications/no/such"}`, differs: "a notification never gets an error (JSON-RPC 2.0 section 4.1); the SDK returns 400"},
		{name: "a request without an id", body: `{"jsonrpc":"2.0","method":"tools/list"}`, differs: text},
		{name: "a batch since 2025-06-18", body: `[` + ping + `]`, header: []string{"Mcp-Protocol-Version: 2025-11-25"}, differs: text},
		{name: "a batch since 2025-06-18, without the header", body: `[` + ping + `]`, differs: "the session's own revision applies; the SDK assumes 2025-03-26"},
		{name: "a fractional id", body: `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, differs: "ids are returned as they were sent; the SDK truncates 1.5 to 1"},
		{name: "an id above 2^53", body: `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, differs: "ids are returned as they were sent; the SDK rounds them"},
		{name: "method twice", body: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, differs: "docs/security.md: duplicate names are refused; the SDK uses the last"},
		{name: "an unknown tool", body: callBody(1, "demo__none", "{}"), differs: "the message contains the tool, as in the MCP specification"},
	}
}

func TestTheSDKsHandlerReturnsTheSameAnswers(t *testing.T) {
	reference := oracle(t)
	r := start(t, nil)
	for _, p := range probes() {
		t.Run(p.name, func(t *testing.T) {
			ours, theirs := p.put(t, r.url+"/mcp"), p.put(t, reference)
			same := reflect.DeepEqual(ours, theirs)
			if same != (p.differs == "") {
				t.Errorf("ours   %+v\ntheirs %+v\nintended: %q", ours, theirs, p.differs)
			}
		})
	}
}

// put sends the probe to an endpoint and reads the response.
func (p probe) put(t *testing.T, url string) response {
	session := ""
	if !p.bare {
		version := p.version
		if version == "" {
			version = "2025-11-25"
		}
		session = send(t, url, "POST", hello(version), "").Header.Get("Mcp-Session-Id")
		send(t, url, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	}
	method := p.method
	if method == "" {
		method = "POST"
	}
	resp := send(t, url, method, p.body, session, p.header...)
	text, _ := io.ReadAll(resp.Body)
	answer := response{Status: resp.StatusCode, Session: resp.Header.Get("Mcp-Session-Id") != ""}
	parts := []string{string(text)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		parts = events(string(text))
	}
	var batch []json.RawMessage
	if json.Unmarshal(text, &batch) == nil {
		parts = nil
		for _, m := range batch {
			parts = append(parts, string(m))
		}
	}
	for _, part := range parts {
		var m any
		if json.Unmarshal([]byte(part), &m) != nil {
			answer.Text += strings.TrimSpace(part)
			continue
		}
		answer.Messages = append(answer.Messages, trim(m))
		var id struct{ ID json.RawMessage }
		_ = json.Unmarshal([]byte(part), &id)
		answer.IDs = append(answer.IDs, string(id.ID))
	}
	if len(answer.IDs) > 1 && strings.HasPrefix(p.body, "[") { // the calls of a batch may end in any order
		slices.Sort(answer.IDs)
		answer.Messages = nil
	}
	return answer
}

// trim removes the members that fakeNamespace's tools return and the oracle's tools do not.
func trim(m any) any {
	o, _ := m.(map[string]any)
	if result, ok := o["result"].(map[string]any); ok && result["structuredContent"] != nil {
		o["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "plain"}}}
	}
	return m
}

func send(t *testing.T, url, method, body, session string, header ...string) *http.Response {
	t.Helper()
	return sendWith(t.Context(), t, url, method, body, session, header...)
}

func sendWith(ctx context.Context, t *testing.T, url, method, body, session string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Authorization": {"Bearer alice"}, "X-Workspace-Id": {"ws_one"}}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}
