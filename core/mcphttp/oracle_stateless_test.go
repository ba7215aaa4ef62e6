package mcphttp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools"
)

// regional is a schema with an argument that is repeated in a header.
const regional = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},` +
	`"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}`

// marks returns the arguments that the schema regional marks with x-mcp-header.
func marks() []core.Mirror {
	return []core.Mirror{{Header: "B", Path: []string{"in", "b"}}, {Header: "N", Path: []string{"in", "n"}}, {Header: "Region", Path: []string{"region"}}}
}

// statelessOracle starts the SDK's handler for the stateless revision. It offers the same tools, prompts and resources
// as fakeNamespace.
func statelessOracle(t *testing.T) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "ropewalk", Title: "Ropewalk", Version: "1.2.3"}, &mcp.ServerOptions{
		SupportedProtocolVersions: supported(), Capabilities: statelessCapabilities(), Instructions: instructions,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
	})
	plain := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "plain"}}}, nil
	}
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "demo__plain", InputSchema: object}, plain)
	s.AddTool(&mcp.Tool{Name: "demo__region", InputSchema: json.RawMessage(regional)}, plain)
	s.AddTool(&mcp.Tool{Name: "demo__fail", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32042, Message: "open the page", Data: json.RawMessage(`{"elicitations":[{"n":12345678901234567890}]}`)}
	})
	s.AddTool(&mcp.Tool{Name: "demo__ask", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(req.Params.InputResponses) > 0 {
			return plain(t.Context(), req)
		}
		return &mcp.CallToolResult{RequestState: "s", InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "form", Message: "?", RequestedSchema: object}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "demo__progress", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 1.5, Message: "alice/ws_one"})
		}
		return plain(ctx, req)
	})
	s.AddPrompt(&mcp.Prompt{Name: "demo__greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "demo://a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "demo://a"}}}, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

// statelessProbe is one stateless request. Its headers match the body, modified by extra as in rig.ask.
type statelessProbe struct {
	name    string
	verb    string // the HTTP method; POST by default
	method  string // the JSON-RPC method
	params  string // members
	body    string // used instead of method and params
	extra   []string
	differs string // why this endpoint's response differs; "" if it must be the same
}

func (p statelessProbe) put(t *testing.T, url string) response {
	t.Helper()
	body, header := statelessRequest(p.method, p.params)
	if p.body != "" {
		body = p.body
	}
	if p.verb == "" {
		p.verb = "POST"
	}
	resp := send(t, url, p.verb, body, "", append(header, p.extra...)...)
	text, _ := io.ReadAll(resp.Body)
	answer := response{Status: resp.StatusCode, Session: resp.Header.Get("Mcp-Session-Id") != ""}
	parts := []string{string(text)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		parts = events(string(text))
	}
	for _, part := range parts {
		answer.note(part)
	}
	return answer
}

// note adds a message to a response, or text that is not a message.
func (a *response) note(part string) {
	var m map[string]any
	if json.Unmarshal([]byte(part), &m) != nil {
		a.Text += strings.TrimSpace(part)
		return
	}
	if failure, ok := m["error"].(map[string]any); ok {
		delete(failure, "message") // the wording differs
	}
	if result, ok := m["result"].(map[string]any); ok {
		outline(result)
	}
	if m["id"] == nil { // the SDK omits an ID that JSON-RPC 2.0 requires to be null
		delete(m, "id")
	}
	a.Messages = append(a.Messages, m)
	var id struct{ ID json.RawMessage }
	_ = json.Unmarshal([]byte(part), &id)
	a.IDs = append(a.IDs, strings.TrimPrefix(string(id.ID), "null"))
}

// outline reduces a result to the parts that do not depend on the tools: the members that the protocol defines and, for
// lists, whether they are present.
func outline(result map[string]any) {
	for name, value := range result {
		switch name {
		case "resultType", "inputRequests", "requestState", "supportedVersions", "capabilities", "instructions":
		case "ttlMs", "cacheScope", "content", "tools", "prompts", "resources", "resourceTemplates":
			if result[name] = fmt.Sprintf("%T", value); value == nil {
				delete(result, name)
			}
		case "_meta":
			delete(value.(map[string]any), "trace")
		default:
			delete(result, name)
		}
	}
}

// statelessMeta returns a _meta with the required members, followed by the members in more.
func statelessMeta(more string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}` + more + `}`
}

func whole(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`
}

func TestTheSDKsHandlerReturnsTheSameAnswersWithoutSessions(t *testing.T) {
	reference := statelessOracle(t)
	r := start(t, nil)
	r.fakeNamespace.listed = append(r.fakeNamespace.listed, tools.Listed{Name: "demo__region", Tool: core.Tool{Server: "demo", Name: "region", Mirrors: marks()}, Raw: json.RawMessage(`{"name":"demo__region"}`)})
	for _, p := range slices.Concat(goodStatelessProbes(), badStatelessProbes(), listenProbes(), headerProbes()) {
		t.Run(p.name, func(t *testing.T) {
			ours, theirs := p.put(t, r.url+"/mcp"), p.put(t, reference)
			if same := reflect.DeepEqual(ours, theirs); same != (p.differs == "") {
				t.Errorf("ours   %+v\ntheirs %+v\nintended: %q", ours, theirs, p.differs)
			}
		})
	}
}

func goodStatelessProbes() []statelessProbe {
	return []statelessProbe{
		{name: "discovery", method: "server/discover"},
		{name: "tools", method: "tools/list"},
		{name: "prompts", method: "prompts/list"},
		{name: "resources", method: "resources/list"},
		{name: "templates", method: "resources/templates/list"},
		{name: "a call", method: "tools/call", params: `"name":"demo__plain","arguments":{}`, extra: []string{"Mcp-Name: demo__plain"}},
		{name: "a call without arguments", method: "tools/call", params: `"name":"demo__plain"`, extra: []string{"Mcp-Name: demo__plain"}},
		{name: "a call with progress", body: whole("tools/call", `"name":"demo__progress","arguments":{"steps":3},`+statelessMeta(`,"progressToken":"p"`)), extra: []string{"Mcp-Method: tools/call", "Mcp-Name: demo__progress"}},
		{name: "an app's own error", method: "tools/call", params: `"name":"demo__fail"`, extra: []string{"Mcp-Name: demo__fail"}},
		{name: "a result that asks for input", body: whole("tools/call", `"name":"demo__ask",`+statelessMeta("")), extra: []string{"Mcp-Method: tools/call", "Mcp-Name: demo__ask"}},
		{name: "the answer to the request for input", body: whole("tools/call", `"name":"demo__ask","requestState":"s","inputResponses":{"q":{"action":"accept","content":{}}},`+statelessMeta("")), extra: []string{"Mcp-Method: tools/call", "Mcp-Name: demo__ask"}},
		{name: "a prompt", method: "prompts/get", params: `"name":"demo__greet"`, extra: []string{"Mcp-Name: demo__greet"}},
		{name: "a resource", method: "resources/read", params: `"uri":"demo://a"`, extra: []string{"Mcp-Name: demo://a"}},
		{name: "a completion", method: "completion/complete", params: `"ref":{"type":"ref/prompt","name":"demo__greet"},"argument":{"name":"a","value":"b"}`},
		{name: "a string id", body: strings.Replace(whole("tools/list", statelessMeta("")), `"id":7`, `"id":"abc"`, 1), extra: []string{"Mcp-Method: tools/list"}},
		{name: "a client that sends its name", body: whole("tools/list", statelessMeta(`,"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}`)), extra: []string{"Mcp-Method: tools/list"}},
		{name: "a session id and a last event id from an earlier connection", method: "tools/list", extra: []string{"Mcp-Session-Id: nobody"}},
		{name: "a notification", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, extra: []string{"Mcp-Method: notifications/cancelled"}},
	}
}

func badStatelessProbes() []statelessProbe {
	text := "refusals are JSON-RPC errors, so that clients show them; the SDK responds with plain text"
	body := "params without a name are invalid whatever the headers contain; the SDK reports a header that differs"
	listing := []string{"Mcp-Method: tools/list"}
	return []statelessProbe{
		{name: "an unknown method", method: "no/such"},
		{name: "initialize", method: "initialize"},
		{name: "ping", method: "ping"},
		{name: "a subscription in the style of older revisions", method: "resources/subscribe", params: `"uri":"demo://a"`},
		{name: "an unsubscription in the style of older revisions", method: "resources/unsubscribe", params: `"uri":"demo://a"`},
		{name: "setting the log level as in older revisions", method: "logging/setLevel", params: `"level":"info"`},
		{name: "listing roots as in older revisions", method: "roots/list"},
		{name: "an invalid log level", body: whole("tools/list", statelessMeta(`,"io.modelcontextprotocol/logLevel":"loud"`)), extra: listing, differs: "logging: an invalid level is an error in the params; the SDK accepts any"},
		{name: "discovery in a revision with sessions", body: strings.Replace(whole("server/discover", statelessMeta("")), "2026-07-28", "2025-11-25", 1), extra: []string{"Mcp-Method: server/discover", "Mcp-Protocol-Version: 2025-11-25"}, differs: "versioning: if a revision does not have this request, the error lists those that do; the SDK reports an unknown method"},
		{name: "discovery without any header", body: whole("server/discover", statelessMeta("")), extra: []string{"Mcp-Protocol-Version: ", "Mcp-Method: "}},
		{name: "a last event id", method: "tools/list", extra: []string{"Last-Event-ID: 1_1"}, differs: "the transport: Last-Event-ID must be ignored; the SDK rejects it"},
		{name: "a completion without a reference", method: "completion/complete"},
		{name: "a prompt without a name", method: "prompts/get", extra: []string{"Mcp-Name: x"}, differs: body},
		{name: "a resource without a uri", method: "resources/read", extra: []string{"Mcp-Name: x"}, differs: body},
		{name: "an unknown tool", method: "tools/call", params: `"name":"demo__none"`, extra: []string{"Mcp-Name: demo__none"}},
		{name: "an unknown prompt", method: "prompts/get", params: `"name":"demo__none"`, extra: []string{"Mcp-Name: demo__none"}},
		{name: "an unknown resource", method: "resources/read", params: `"uri":"demo://none"`, extra: []string{"Mcp-Name: demo://none"}},
		{name: "an invalid cursor", method: "tools/list", params: `"cursor":"x"`},
		{name: "a name that is not a string", method: "tools/call", params: `"name":5`, extra: []string{"Mcp-Name: 5"}, differs: body},
		{name: "no version in _meta", body: whole("tools/list", `"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}`), extra: listing},
		{name: "a version that is not a string", body: whole("tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":5,"io.modelcontextprotocol/clientCapabilities":{}}`), extra: listing},
		{name: "no capabilities in _meta", body: whole("tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), extra: listing},
		{name: "capabilities that are not an object", body: whole("tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":5}`), extra: listing},
		{name: "a client info that is not an object", body: whole("tools/list", statelessMeta(`,"io.modelcontextprotocol/clientInfo":5`)), extra: listing},
		{name: "no _meta", body: whole("tools/list", ``), extra: listing},
		{name: "no params", body: `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, extra: listing},
		{name: "an unsupported version", body: strings.Replace(whole("tools/list", statelessMeta("")), "2026-07-28", "2027-01-01", 1), extra: []string{"Mcp-Method: tools/list", "Mcp-Protocol-Version: 2027-01-01"}},
		{name: "a version with sessions, in _meta only", body: strings.Replace(whole("tools/list", statelessMeta("")), "2026-07-28", "2025-11-25", 1), extra: listing},
		{name: "listening without a filter", method: "subscriptions/listen"},
		{name: "listening with a filter that is not an object", method: "subscriptions/listen", params: `"notifications":5`},
		{name: "a batch", body: `[` + whole("tools/list", statelessMeta("")) + `]`, extra: listing, differs: text},
		{name: "a response", body: `{"jsonrpc":"2.0","id":7,"result":{}}`, differs: "the transport: a client must not send responses; the SDK accepts them"},
		{name: "not JSON", body: `{`, differs: text},
		{name: "GET", verb: "GET"},
		{name: "DELETE", verb: "DELETE"},
		{name: "POST with plain text", method: "tools/list", extra: []string{"Content-Type: text/plain"}, differs: text},
		{name: "Accept with only JSON", method: "tools/list", extra: []string{"Accept: application/json"}, differs: "docs/api.md: the status is 406; the SDK returns 400"},
		{name: "a request without an id", body: `{"jsonrpc":"2.0","method":"tools/list","params":{` + statelessMeta("") + `}}`, extra: listing, differs: text},
		{name: "an unknown notification", body: `{"jsonrpc":"2.0","method":"notifications/no/such"}`, extra: []string{"Mcp-Method: notifications/no/such"}, differs: "unknown notifications are accepted, as in sessions; the SDK returns 400"},
		{name: "a notification under another name", body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, extra: []string{"Mcp-Method: tools/list"}},
	}
}

func listenProbes() []statelessProbe {
	return []statelessProbe{
		{name: "listening for nothing", method: "subscriptions/listen", params: `"notifications":{}`},
		{name: "listening for unknown notifications", method: "subscriptions/listen", params: `"notifications":{"toolsListChanged":false,"resourceSubscriptions":[]}`},
		{name: "listening with a filter of the wrong type", method: "subscriptions/listen", params: `"notifications":{"toolsListChanged":"yes"}`},
		{name: "listening without params", body: `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen"}`, extra: []string{"Mcp-Method: subscriptions/listen"}, differs: "refusals are JSON-RPC errors; the SDK responds with plain text"},
	}
}

func headerProbes() []statelessProbe {
	call := `"name":"demo__region","arguments":`
	with := func(header ...string) []string { return append([]string{"Mcp-Name: demo__region"}, header...) }
	return []statelessProbe{
		{name: "no version in the headers", method: "tools/list", extra: []string{"Mcp-Protocol-Version: "}},
		{name: "another version in the headers", method: "tools/list", extra: []string{"Mcp-Protocol-Version: 2027-01-01"}},
		{name: "no method in the headers", method: "tools/list", extra: []string{"Mcp-Method: "}},
		{name: "another method in the headers", method: "tools/list", extra: []string{"Mcp-Method: prompts/list"}},
		{name: "the method in upper case", method: "tools/list", extra: []string{"Mcp-Method: TOOLS/LIST"}},
		{name: "no name in the headers", method: "tools/call", params: `"name":"demo__plain"`},
		{name: "another name in the headers", method: "tools/call", params: `"name":"demo__plain"`, extra: []string{"Mcp-Name: demo__fail"}},
		{name: "no uri in the headers", method: "resources/read", params: `"uri":"demo://a"`},
		{name: "another prompt in the headers", method: "prompts/get", params: `"name":"demo__greet"`, extra: []string{"Mcp-Name: demo__none"}},
		{name: "a name in base64", method: "resources/read", params: `"uri":"demo://a"`, extra: []string{"Mcp-Name: =?base64?ZGVtbzovL2E=?="}, differs: "the transport, value encoding: a server must decode Mcp-Name; the SDK compares it without decoding"},
		{name: "an argument in a header", method: "tools/call", params: call + `{"region":"eu","in":{"n":3,"b":true}}`, extra: with("Mcp-Param-Region: eu", "Mcp-Param-N: 3", "Mcp-Param-B: true")},
		{name: "a number in another notation", method: "tools/call", params: call + `{"in":{"n":3.0}}`, extra: with("Mcp-Param-N: 3")},
		{name: "an argument in base64", method: "tools/call", params: call + `{"region":"é"}`, extra: with("Mcp-Param-Region: =?base64?w6k=?=")},
		{name: "an argument that is null", method: "tools/call", params: call + `{"region":null}`, extra: with()},
		{name: "a header for another tool", method: "tools/call", params: call + `{}`, extra: with("Mcp-Param-Color: red")},
		{name: "a header without an argument", method: "tools/call", params: call + `{}`, extra: with("Mcp-Param-Region: eu")},
		{name: "an argument without its header", method: "tools/call", params: call + `{"region":"eu"}`, extra: with()},
		{name: "a different value in the header", method: "tools/call", params: call + `{"region":"eu"}`, extra: with("Mcp-Param-Region: us")},
		{name: "a fraction", method: "tools/call", params: call + `{"in":{"n":3.5}}`, extra: with("Mcp-Param-N: 3.5")},
		{name: "a number above 2^53", method: "tools/call", params: call + `{"in":{"n":9007199254740993}}`, extra: with("Mcp-Param-N: 9007199254740993")},
		{name: "broken base64", method: "tools/call", params: call + `{"region":"Hello"}`, extra: with("Mcp-Param-Region: =?base64?SGVsbG8?=")},
		{name: "an unencoded argument that no header can carry", method: "tools/call", params: call + `{"region":"é"}`, extra: with("Mcp-Param-Region: é"), differs: "the transport: a server must refuse characters that are not allowed in a plain header value; the SDK accepts them"},
	}
}

func TestListeningBehavesLikeTheSDKsHandler(t *testing.T) {
	reference, r := statelessOracle(t), start(t, nil)
	for _, c := range []struct{ name, wanted string }{
		{"lists", `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`},
		{"a resource", `{"resourceSubscriptions":["demo://a"]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [2]response
			for i, url := range []string{r.url + "/mcp", reference} {
				ctx, leave := context.WithCancel(t.Context())
				body, header := statelessRequest("subscriptions/listen", `"notifications":`+c.wanted)
				resp := sendWith(ctx, t, url, "POST", body, "", header...)
				got[i].Status, got[i].Text = resp.StatusCode, resp.Header.Get("Content-Type")
				got[i].note(next(t, bufio.NewScanner(resp.Body)))
				leave()
			}
			if !reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("ours   %+v\ntheirs %+v", got[0], got[1])
			}
		})
	}
}
