package mcphttp

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const statelessVersion = "Mcp-Protocol-Version: 2026-07-28"

// statelessRequest returns a stateless request and its headers. params holds members.
func statelessRequest(method, params string) (body string, header []string) {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, []string{statelessVersion, "Mcp-Method: " + method}
}

// self is the server's identity.
const self = `{"name":"ropewalk","title":"Ropewalk","version":"1.2.3"}`

func TestARequestWithoutASessionIsAnswered(t *testing.T) {
	r := start(t, nil)
	for _, c := range []struct{ name, method, params, header, want string }{
		{"discovery", "server/discover", "", "", `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`},
		{"discovery names the server", "server/discover", "", "", `"io.modelcontextprotocol/serverInfo":{"name":"ropewalk"`},
		{"discovery may be cached only for its caller", "server/discover", "", "", `"cacheScope":"private"`},
		{"tools keep unknown fields", "tools/list", "", "", `"x-unknown":12345678901234567890`},
		{"tools may be cached only for their caller", "tools/list", "", "", `"resultType":"complete","ttlMs":5000,"cacheScope":"private"`},
		{"prompts are named after their app", "prompts/list", "", "", `{"prompts":[{"name":"demo__greet","x-unknown":12345678901234567890}],`},
		{"resources are listed byte for byte", "resources/list", "", "", `{"resources":[{"uri":"demo://a","name":"a","x":1.50}],`},
		{"templates", "resources/templates/list", "", "", `{"resourceTemplates":[{"uriTemplate":"demo://t/{id}","name":"t"}],`},
		{"a call", "tools/call", `"name":"demo__echo","arguments":{"n":1.0}`, "Mcp-Name: demo__echo", `"args":{"n":1.0}`},
		{"a call's result has its type", "tools/call", `"name":"demo__echo"`, "Mcp-Name: demo__echo", `"_meta":{"trace":"t","io.modelcontextprotocol/serverInfo":` + self + `},"isError":false,"resultType":"complete"}}`},
		{"a prompt", "prompts/get", `"name":"demo__greet"`, "Mcp-Name: demo__greet", `"method":"prompts/get","params":{"name":"greet",`},
		{"a resource may never be cached for others", "resources/read", `"uri":"demo://a"`, "Mcp-Name: demo://a", `"cacheScope":"private","resultType":"complete","ttlMs":5000,"_meta":{"io.modelcontextprotocol/serverInfo":` + self + `}}}`},
		{"the app's own cache time", "resources/read", `"uri":"demo://ttl60000"`, "Mcp-Name: demo://ttl60000", `{"contents":[],"ttlMs":60000,`},
		{"a negative time", "resources/read", `"uri":"demo://ttl-1"`, "Mcp-Name: demo://ttl-1", `{"contents":[],"ttlMs":5000,`},
		{"a fractional time", "resources/read", `"uri":"demo://ttl0.5"`, "Mcp-Name: demo://ttl0.5", `{"contents":[],"ttlMs":5000,`},
		{"a name in base64", "resources/read", `"uri":"demo://a"`, "Mcp-Name: =?base64?ZGVtbzovL2E=?=", `"method":"resources/read"`},
		{"a result that asks for input", "resources/read", `"uri":"demo://input"`, "Mcp-Name: demo://input", `"result":{"resultType":"input_required","inputRequests":{},"_meta":{"io.modelcontextprotocol/serverInfo":` + self + `}}}`},
		{"the answer to that request for input", "prompts/get", `"name":"demo__greet","inputResponses":{"a":1.0},"requestState":"s"`, "Mcp-Name: demo__greet", `"inputResponses":{"a":1.0},"requestState":"s"`},
		{"a completion", "completion/complete", `"ref":{"type":"ref/prompt","name":"demo__greet"},"argument":{"name":"a","value":"b"}`, "", `"ref":{"type":"ref/prompt","name":"greet"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, header := statelessRequest(c.method, c.params)
			if c.header != "" {
				header = append(header, c.header)
			}
			resp, text := r.in(t).say("POST", alice, body, header...)
			if resp.StatusCode != http.StatusOK || !strings.Contains(text, c.want) || resp.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%d %s\nwant %s", resp.StatusCode, text, c.want)
			}
		})
	}
}

func TestARequestWithoutASessionIsRefused(t *testing.T) {
	r := start(t, nil)
	list, headers := statelessRequest("tools/list", "")
	call, _ := statelessRequest("tools/call", `"name":"demo__echo","arguments":{}`)
	remove := func(text string) string { return strings.Replace(list, text, `"x":1`, 1) }
	for _, c := range []struct {
		name   string
		body   string
		header []string
		status int
		want   string
	}{
		{"no version in _meta", remove(`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`), headers, 400, `-32602`},
		{"no capabilities in _meta", remove(`"io.modelcontextprotocol/clientCapabilities":{}`), headers, 400, `-32602`},
		{"capabilities that are not an object", remove(`"io.modelcontextprotocol/clientCapabilities":{}`), headers, 400, `-32602`},
		{"an invalid log level", strings.Replace(list, `Capabilities":{}`, `Capabilities":{},"io.modelcontextprotocol/logLevel":"loud"`, 1), headers, 400, `-32602`},
		{"no _meta", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, headers, 400, `-32602`},
		{"a version in the body only", list, []string{"Mcp-Method: tools/list"}, 400, `-32020`},
		{"another version in the header", list, []string{"Mcp-Protocol-Version: 2027-01-01", "Mcp-Method: tools/list"}, 400, `-32020`},
		{"an unsupported version", strings.Replace(list, "2026-07-28", "2027-01-01", 1), []string{"Mcp-Protocol-Version: 2027-01-01", "Mcp-Method: tools/list"}, 400,
			`{"code":-32022,"message":"this protocol revision is not supported","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2027-01-01"}},"id":7}`},
		{"no method in the headers", list, headers[:1], 400, `-32020`},
		{"another method in the headers", list, []string{statelessVersion, "Mcp-Method: TOOLS/LIST"}, 400, `-32020`},
		{"no name in the headers", call, []string{statelessVersion, "Mcp-Method: tools/call"}, 400, `-32020`},
		{"another name in the headers", call, []string{statelessVersion, "Mcp-Method: tools/call", "Mcp-Name: demo__plain"}, 400, `-32020`},
		{"a name in invalid base64", call, []string{statelessVersion, "Mcp-Method: tools/call", "Mcp-Name: =?base64?ZGVtb19fZWNobw?="}, 400, `-32020`},
		{"a batch", "[" + list + "]", headers, 400, `-32600`},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, headers, 400, `-32600`},
		{"not JSON", `{`, headers, 400, `-32700`},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, text := r.in(t).say("POST", alice, c.body, c.header...)
			if resp.StatusCode != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%d %s\nwant %d %s", resp.StatusCode, text, c.status, c.want)
			}
		})
	}
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"} {
		t.Run(method, func(t *testing.T) {
			body, header := statelessRequest(method, "")
			resp, text := r.in(t).say("POST", alice, body, header...)
			if resp.StatusCode != http.StatusNotFound || !strings.Contains(text, `-32601`) || !strings.Contains(text, `"id":7`) {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
	for _, method := range []string{"GET", "DELETE"} {
		if resp, _ := r.say(method, r.join(alice), "", statelessVersion); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
	if resp, text := r.say("POST", alice, `{"jsonrpc":"2.0","method":"notifications/x"}`, statelessVersion, "Mcp-Method: notifications/x"); resp.StatusCode != http.StatusAccepted || text != "" {
		t.Errorf("a notification: %d %s", resp.StatusCode, text)
	}
}

func TestARequestWithoutASessionDoesNotUseOne(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	for _, method := range []string{"tools/list", "tools/call", "ping", "subscriptions/listen", "server/discover"} {
		body, _ := statelessRequest(method, `"name":"demo__echo"`)
		for _, version := range []string{"-Mcp-Protocol-Version", "Mcp-Protocol-Version: 2025-11-25"} {
			if resp, text := r.say("POST", w, body, version); resp.StatusCode != 400 || !strings.Contains(text, "-32020") {
				t.Errorf("%s: %d %s", method, resp.StatusCode, text)
			}
		}
		_, header := statelessRequest(method, "")
		if resp, _ := r.say("POST", w, body, append(header, "Mcp-Name: demo__echo")...); resp.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: the response has a session id", method)
		}
	}
}

func TestErrorsFromCallsWithoutASessionHaveAStatus(t *testing.T) {
	r := start(t, nil)
	for _, c := range []struct {
		name, tool string
		status     int
		want       string
	}{
		{"an unknown tool", "demo__none", 400, `-32602`},
		{"a tool that the caller may not use", "demo__hidden", 400, `-32602`},
		{"an app's own error", "demo__fail", 200, `"data":{"elicitations":[{"n":12345678901234567890}]}`},
		{"a panic", "demo__panic", 200, `-32603`},
		{"a result that is not JSON", "demo__broken", 200, `something other than an object`},
		{"an app that is down", "demo__down", 200, `"error":"unavailable"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, header := statelessRequest("tools/call", `"name":"`+c.tool+`"`)
			resp, text := r.in(t).say("POST", alice, body, append(header, "Mcp-Name: "+c.tool)...)
			if resp.StatusCode != c.status || !strings.Contains(text, c.want) {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
	body, header := statelessRequest("resources/read", `"uri":"demo://none"`)
	if resp, text := r.say("POST", alice, body, append(header, "Mcp-Name: demo://none")...); resp.StatusCode != 400 || !strings.Contains(text, `{"code":-32602,"message":"Resource not found","data":{"uri":"demo://none"}}`) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

func TestProgressWithoutASessionComesBeforeTheResult(t *testing.T) {
	r := start(t, nil)
	body, header := statelessRequest("tools/call", `"name":"demo__progress","arguments":{"steps":3}`)
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
	resp, text := r.say("POST", alice, body, append(header, "Mcp-Name: demo__progress")...)
	got := events(text)
	if resp.Header.Get("Content-Type") != "text/event-stream" || len(got) != 4 || !strings.Contains(got[0], `"progress":1`) || !strings.Contains(got[3], `"resultType":"complete"`) {
		t.Errorf("%v %s", resp.Header, text)
	}
	if strings.Contains(text, "id: ") {
		t.Error("without a session, there should be nothing to resume")
	}
}

func TestAClientThatLeavesCancelsItsCall(t *testing.T) {
	r := start(t, nil)
	body, header := statelessRequest("tools/call", `"name":"demo__wait"`)
	req := r.request("POST", alice, body, append(header, "Mcp-Name: demo__wait")...)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := r.client.Do(req.WithContext(ctx)); err == nil {
			resp.Body.Close()
		}
	}()
	<-r.fakeNamespace.started
	leave()
	select {
	case err := <-r.fakeNamespace.ended:
		if err == nil {
			t.Error("the call continued")
		}
	case <-time.After(time.Minute):
		t.Error("the call was not cancelled")
	}
	<-gone
}

func TestArgumentsThatAToolRequiresInHeaders(t *testing.T) {
	r := start(t, nil)
	r.fakeNamespace.listed[0].Tool.Mirrors = marks()
	for _, c := range []struct {
		name, arguments string
		header          []string
		refused         bool
	}{
		{"all headers", `{"region":"eu","in":{"n":3,"b":true}}`, []string{"Mcp-Param-Region: eu", "Mcp-Param-N: 3", "Mcp-Param-B: true"}, false},
		{"a number in another notation", `{"in":{"n":3.0}}`, []string{"Mcp-Param-N: 3"}, false},
		{"base64", `{"region":"é"}`, []string{"Mcp-Param-Region: =?base64?w6k=?="}, false},
		{"no headers are required", `{"region":null}`, nil, false},
		{"a header without an argument", `{}`, []string{"Mcp-Param-Region: eu"}, true},
		{"no header", `{"region":"eu"}`, nil, true},
		{"another value", `{"region":"eu"}`, []string{"Mcp-Param-Region: us"}, true},
		{"another number", `{"in":{"n":3}}`, []string{"Mcp-Param-N: 4"}, true},
		{"no number", `{"in":{"n":3}}`, []string{"Mcp-Param-N: x"}, true},
		{"broken base64", `{"region":"Hello"}`, []string{"Mcp-Param-Region: =?base64?SGVsbG8?="}, true},
		{"an object for a string", `{"region":{}}`, []string{"Mcp-Param-Region: {}"}, true},
		{"a duplicate key", `{"region":"eu","region":"us"}`, []string{"Mcp-Param-Region: us"}, true},
		{"a header with the opposite boolean", `{"in":{"b":true}}`, []string{"Mcp-Param-B: false"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, header := statelessRequest("tools/call", `"name":"demo__echo","arguments":`+c.arguments)
			resp, text := r.in(t).say("POST", alice, body, append(append(header, "Mcp-Name: demo__echo"), c.header...)...)
			if refused := resp.StatusCode == 400 && strings.Contains(text, "-32020"); refused != c.refused {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
}

func TestAListeningStreamReceivesWhatItSubscribedTo(t *testing.T) {
	r := start(t, nil)
	body, header := statelessRequest("subscriptions/listen", `"notifications":{"promptsListChanged":true,"resourceSubscriptions":["demo://a","ropewalk://nobody/x"]}`)
	resp := r.ask("POST", alice, body, header...)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":7}`
	if got := next(t, lines); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true,"resourceSubscriptions":["demo://a"]},`+tag+`}}` {
		t.Errorf("got %s", got)
	}
	r.fakeNamespace.change(core.KindTools) // no stream subscribed to tool changes
	<-time.After(3 * debounce)
	r.fakeNamespace.change(core.KindPrompts)
	if got := next(t, lines); got != `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{`+tag+`}}` {
		t.Errorf("got %s", got)
	}
	for _, method := range []string{"notifications/tools/list_changed", "notifications/prompts/list_changed"} { // from an instance for clients without a session
		for _, of := range []string{"a session", ""} {
			r.fakeNamespace.app.Notify("", apps.Notification{Server: "demo", Session: of, FromPool: true, Notification: rpc.Notification{Method: method}})
		}
	}
	if got := next(t, lines); got != `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{`+tag+`}}` {
		t.Errorf("got %s", got)
	}
	r.fakeNamespace.app.notify("notifications/resources/updated", `{"uri":"demo://b"}`)
	r.fakeNamespace.app.notify("notifications/resources/updated", `{"uri":"demo://a","_meta":{"x":1.0}}`)
	if got := next(t, lines); got != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"demo://a","_meta":{"x":1.0,"io.modelcontextprotocol/subscriptionId":7}}}` {
		t.Errorf("got %s", got)
	}
	if r.fakeNamespace.app.Subscriptions("demo://a") != 1 {
		t.Error("the app received no subscription")
	}
	r.endpoint.o.Streams.Drain() // as in a shutdown
	if got := next(t, lines); got != `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":`+self+`,"io.modelcontextprotocol/subscriptionId":7}}}` {
		t.Errorf("got %s", got)
	}
	for r.fakeNamespace.app.Subscriptions("demo://a") != 0 || r.fakeNamespace.watched() != 0 {
		<-time.After(time.Millisecond)
	}
}

func TestListenersAreBounded(t *testing.T) {
	r := start(t, func(o *Options) { o.MaxSessions = 2 })
	body, header := statelessRequest("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	for range 2 {
		resp := r.ask("POST", alice, body, header...)
		defer resp.Body.Close()
	}
	if resp, text := r.say("POST", alice, body, header...); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	r.join(alice) // sessions have their own places
	for _, bad := range []string{``, `"notifications":1`, `"notifications":null`} {
		body, header := statelessRequest("subscriptions/listen", bad)
		if resp, text := r.say("POST", alice, body, header...); resp.StatusCode != 400 || !strings.Contains(text, "-32602") {
			t.Errorf("%q: %d %s", bad, resp.StatusCode, text)
		}
	}
}

func TestTheOfficialClientWithoutASession(t *testing.T) {
	r := start(t, nil)
	progress := make(chan float64, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { progress <- req.Params.Progress },
	})
	transport := &mcp.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: &http.Client{Transport: credentials{r.client.Transport, alice}}}
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.endpoint.live.All()); n != 0 {
		t.Errorf("%d sessions for a client with the newest revision", n)
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 6 {
		t.Fatalf("tools: %v %v", list, err)
	}
	params := &mcp.CallToolParams{Name: "demo__progress", Arguments: map[string]any{"steps": 3}}
	params.SetProgressToken("p")
	if result, err := session.CallTool(t.Context(), params); err != nil || result.Content[0].(*mcp.TextContent).Text != "alice/ws_one" {
		t.Fatalf("call: %v %v", result, err)
	}
	for want := range 3 {
		if got := <-progress; got != float64(want+1) {
			t.Errorf("progress %v, want %d", got, want+1)
		}
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}
