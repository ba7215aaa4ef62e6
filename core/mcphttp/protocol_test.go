package mcphttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/tools"
)

func TestInitializeNegotiatesEveryRevision(t *testing.T) {
	r := start(t, nil)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "1999-01-01": "2025-11-25",
	} {
		resp, body := r.say("POST", alice, hello(asked))
		var answer struct {
			ID     json.RawMessage
			Result struct {
				ProtocolVersion string
				ServerInfo      struct{ Name, Version string }
				Capabilities    map[string]map[string]any
			}
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err, body)
		}
		got := answer.Result
		if resp.StatusCode != 200 || got.ProtocolVersion != want || got.ServerInfo.Name != "ropewalk" || got.ServerInfo.Version != "1.2.3" || string(answer.ID) != "0" {
			t.Errorf("a client with revision %s: %d %s", asked, resp.StatusCode, body)
		}
		if got.Capabilities["tools"]["listChanged"] != true || got.Capabilities["logging"] == nil {
			t.Errorf("capabilities: %s", body)
		}
		if resp.Header.Get("Mcp-Session-Id") == "" || resp.Header.Get("Content-Length") == "" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("headers: %v", resp.Header)
		}
	}
}

func TestOnlyInitializeReturnsTheSessionID(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	for _, body := range []string{ping, callBody(1, "demo__echo", "{}"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
		if resp, _ := r.say("POST", w, body); resp.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s came with a session id", body)
		}
	}
}

func TestTransportRules(t *testing.T) {
	r := start(t, nil)
	w, old := r.join(alice), r.join(alice, "2025-03-26")
	two := `[` + ping + `,{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`
	for _, tc := range []struct {
		name   string
		who    who
		body   string
		extra  []string
		status int
		want   string // the whole body if it starts with { or [, or else a part of it
	}{
		{"a ping", w, ping, nil, 200, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"Accept with ranges", w, ping, []string{"Accept: application/*;q=0.9, TEXT/*"}, 200, ""},
		{"Accept anything", w, ping, []string{"Accept: */*"}, 200, ""},
		{"Accept without streams", w, ping, []string{"Accept: application/json"}, 406, "Accept"},
		{"Accept without JSON", w, ping, []string{"Accept: text/event-stream"}, 406, "Accept"},
		{"no Accept", w, ping, []string{"-Accept"}, 406, "Accept"},
		{"Content-Type with a charset", w, ping, []string{"Content-Type: application/json; charset=utf-8"}, 200, ""},
		{"Content-Type with a charset other than UTF-8", w, ping, []string{"Content-Type: application/json; charset=utf-16"}, 415, "UTF-8"},
		{"another Content-Type", w, ping, []string{"Content-Type: text/plain"}, 415, "Content-Type"},
		{"no Content-Type", w, ping, []string{"-Content-Type"}, 415, "Content-Type"},
		{"a Content-Type with the right prefix only", w, ping, []string{"Content-Type: application/jsonx"}, 415, "Content-Type"},
		{"a compressed body", w, ping, []string{"Content-Encoding: gzip"}, 415, "Content-Encoding"},
		{"a supported revision in the header", w, ping, []string{"Mcp-Protocol-Version: 2025-06-18"}, 200, ""},
		{"an unknown revision in the header", w, ping, []string{"Mcp-Protocol-Version: 1999-01-01"}, 400, "2025-11-25"},
		{"the sessionless revision in a session", w, ping, []string{"Mcp-Protocol-Version: 2026-07-28"}, 400, `"code":-32602`},
		{"an empty revision in the header", w, ping, []string{"Mcp-Protocol-Version: "}, 400, "2025-11-25"},
		{"an empty session", alice, hello("2025-11-25"), []string{"Mcp-Session-Id: "}, 400, "Mcp-Session-Id is empty"},
		{"an empty workspace", alice, hello("2025-11-25"), []string{"X-Workspace-Id: "}, 400, "X-Workspace-Id is malformed"},
		{"an empty surface", w, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"X-Tools-Surface: "}, 400, `"code":-32600`},
		{"not JSON", w, `{"jsonrpc":`, nil, 400, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"the body is not valid JSON"},"id":null}`},
		{"not JSON, without a session", alice, `nope`, nil, 400, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"the body is not valid JSON"},"id":null}`},
		{"an empty body", w, ``, nil, 400, "-32700"},
		{"a second value after the first", w, ping + ping, nil, 400, "-32700"},
		{"a request without a session", alice, ping, nil, 400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"this request needs a session; send initialize first, and then the Mcp-Session-Id that it returns"},"id":null}`},
		{"initialize in a batch", alice, `[` + hello("2025-03-26") + `]`, nil, 400, `"code":-32000`},
		{"initialize twice", w, hello("2025-11-25"), nil, 200, `duplicate`},
		{"an unknown method", w, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, nil, 200, `"code":-32601`},
		{"an unknown notification", w, `{"jsonrpc":"2.0","method":"notifications/no/such"}`, nil, 202, ``},
		{"a request without an id", w, `{"jsonrpc":"2.0","method":"tools/list"}`, nil, 400, `"code":-32600`},
		{"a notification with an id", w, `{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, nil, 200, `"code":-32600`},
		{"a null id", w, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, `"code":-32600`},
		{"an id that is an object", w, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, `"code":-32600`},
		{"ids are returned as they were sent", w, `{"jsonrpc":"2.0","id":9007199254740993.50,"method":"ping"}`, nil, 200, `{"jsonrpc":"2.0","id":9007199254740993.50,"result":{}}`},
		{"string ids are returned as they were sent", w, `{"jsonrpc":"2.0","id":"\u00e9\n","method":"ping"}`, nil, 200, `{"jsonrpc":"2.0","id":"\u00e9\n","result":{}}`},
		{"a progress token that is null", w, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__progress","arguments":{"steps":1},"_meta":{"progressToken":null}}}`, nil, 200,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"alice/ws_one","annotations":{"priority":1.0}}],"structuredContent":{"big":12345678901234567890,"args":{"steps":1}},"_meta":{"trace":"t"},"isError":false}}`},
		{"a progress token that is an object", w, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__progress","arguments":{"steps":1},"_meta":{"progressToken":{}}}}`, nil, 400, `params._meta.progressToken must be a string or a number`},
		{"a progress token that is a boolean", w, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__progress","arguments":{"steps":1},"_meta":{"progressToken":true}}}`, nil, 400, `"code":-32602`},
		{"arguments that are a string", w, callBody(1, "demo__echo", `"{}"`), nil, 200, `params.arguments must be an object`},
		{"arguments that are a list", w, callBody(1, "demo__echo", `[{}]`), nil, 200, `"code":-32602`},
		{"arguments of a prompt that are a string", w, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"demo__p","arguments":"x"}}`, nil, 200, `params.arguments must be an object`},
		{"arguments that are null", w, callBody(1, "demo__echo", `null`), nil, 200, `"result"`},
		{"clientInfo that is a string", alice, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":"x"}}`, nil, 400, `params.clientInfo of initialize must not be of type string"`},
		{"another version of JSON-RPC", w, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, nil, 400, `"code":-32600`},
		{"a response that nobody is waiting for", w, `{"jsonrpc":"2.0","id":99,"result":{}}`, nil, 202, ``},
		{"a batch before 2025-06-18", old, two, nil, 200, `"id":8`},
		{"a batch of notifications", old, `[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`, nil, 202, ``},
		{"a batch of one returns an array", old, `[` + ping + `]`, nil, 200, `[{"jsonrpc":"2.0","id":7,"result":{}}]`},
		{"an empty batch", old, `[]`, nil, 400, `"code":-32600`},
		{"a duplicate id in a batch", old, `[` + ping + `,` + ping + `]`, nil, 400, `already in flight`},
		{"a batch since 2025-06-18", w, two, nil, 400, `"code":-32600`},
		{"the log level", w, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`, nil, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := r.in(t)
			resp, body := r.say("POST", tc.who, tc.body, tc.extra...)
			whole := strings.HasPrefix(tc.want, "{") || strings.HasPrefix(tc.want, "[")
			if resp.StatusCode != tc.status || whole && body != tc.want || !strings.Contains(body, tc.want) || tc.status == 202 && body != "" {
				t.Errorf("got %d %s, want %d %s", resp.StatusCode, body, tc.status, tc.want)
			}
		})
	}
	if resp, body := r.say("GET", w, "", "Accept: application/json"); resp.StatusCode != 406 {
		t.Errorf("GET without text/event-stream: %d %s", resp.StatusCode, body)
	}
	if resp, body := r.say("GET", w, "", "Last-Event-ID: "); resp.StatusCode != 400 {
		t.Errorf("GET with an empty Last-Event-ID: %d %s", resp.StatusCode, body)
	}
}

func TestAToolIsListedAndCalledWithoutLosingAnyPart(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	_, body := r.say("POST", w, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	var raws []string
	for _, listed := range r.fakeNamespace.ListFor(caller("alice", "ws_one"), tools.From{}) {
		raws = append(raws, string(listed.Raw))
	}
	if want := `{"jsonrpc":"2.0","id":"l","result":{"tools":[` + strings.Join(raws, ",") + `]}}`; body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	_, body = r.say("POST", w, callBody("c", "demo__echo", `{"n":12345678901234567890,"s":"<&>","f":1.0}`))
	want := `{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"alice/ws_one","annotations":{"priority":1.0}}],"structuredContent":{"big":12345678901234567890,"args":{"n":12345678901234567890,"s":"<&>","f":1.0}},"_meta":{"trace":"t"},"isError":false}}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestFailedCalls(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	for _, tc := range []struct{ name, tool, want string }{
		{"an unknown tool", "demo__nope", `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Unknown tool: demo__nope"},"id":1}`},
		{"a tool that the caller may not use looks unknown", "demo__hidden", `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Unknown tool: demo__hidden"},"id":1}`},
		{"an app's own error passes unchanged", "demo__fail", `{"jsonrpc":"2.0","error":{"code":-32042,"message":"open the page","data":{"elicitations":[{"n":12345678901234567890}]}},"id":1}`},
		{"a panic fails only its call", "demo__panic", `{"jsonrpc":"2.0","error":{"code":-32603,"message":"internal error"},"id":1}`},
		{"arguments that do not match the schema", "demo__strict", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"arguments of demo__strict do not match: {\"errors\":[\"/a\"]}"}],"isError":true}}`},
		{"an app that is down", "demo__down", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"demo is restarting","data":{"error":"unavailable"}},"id":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := r.in(t)
			resp, body := r.say("POST", w, callBody(1, tc.tool, "{}"))
			if resp.StatusCode != 200 || body != tc.want {
				t.Errorf("got %d %s\nwant %s", resp.StatusCode, body, tc.want)
			}
		})
	}
	if _, body := r.say("POST", w, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}`); !strings.Contains(body, "-32602") {
		t.Errorf("a call without a name: %s", body)
	}
	if _, body := r.say("POST", w, callBody(2, "demo__echo", "{}")); !strings.Contains(body, "result") {
		t.Errorf("the next call must succeed: %s", body)
	}
	admin := r.join(who{token: "admin", workspace: "ws_one"})
	if _, body := r.say("POST", admin, callBody(2, "demo__hidden", "{}")); !strings.Contains(body, "result") {
		t.Errorf("an admin should be able to call it: %s", body)
	}
}

func TestARefusalByAListedToolIsReturnedAsAResult(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	if _, body := r.say("POST", w, callBody(1, "demo__partly", "{}")); !strings.Contains(body, "Unknown tool: demo__partly") {
		t.Errorf("while it is not listed: %s", body)
	}
	r.fakeNamespace.mu.Lock()
	r.fakeNamespace.listed = append(r.fakeNamespace.listed, tools.Listed{Name: "demo__partly", Raw: json.RawMessage(`{"name":"demo__partly"}`)})
	r.fakeNamespace.mu.Unlock()
	want := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"stopping apps requires the admin role"}],"isError":true}}`
	if _, body := r.say("POST", w, callBody(1, "demo__partly", "{}")); body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestProgressComesBeforeTheResultAndInOrder(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	resp, body := r.say("POST", w, progressBody(3, "tok", 200))
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		t.Fatalf("%d %s", resp.StatusCode, ct)
	}
	got := events(body)
	if len(got) != 201 {
		t.Fatalf("%d events: %s", len(got), body)
	}
	for i, text := range got[:200] {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":%d,"message":"alice/ws_one","total":1.50}}`, i+1)
		if text != want {
			t.Fatalf("event %d: %s, want %s", i, text, want)
		}
	}
	if !strings.Contains(got[200], `"id":3,"result":{"content"`) {
		t.Errorf("the last event is not the result: %s", got[200])
	}
	resp, body = r.say("POST", w, callBody(4, "demo__progress", `{"steps":5}`))
	if resp.Header.Get("Content-Type") != "application/json" || resp.ContentLength != int64(len(body)) || strings.Contains(body, "progress\"") {
		t.Errorf("a caller that did not ask for progress got a stream: %v %s", resp.Header, body)
	}
}

func TestABatchIsStreamedIfOneOfItsCallsIs(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice, "2025-03-26")
	_, body := r.say("POST", w, `[`+progressBody(1, "a", 2)+`,`+callBody(2, "demo__echo", "{}")+`]`)
	got := events(body)
	if len(got) != 4 {
		t.Fatalf("%d events: %s", len(got), body)
	}
	if all := strings.Join(got, "\n"); !strings.Contains(all, `"id":1,"result"`) || !strings.Contains(all, `"id":2,"result"`) {
		t.Errorf("both calls should be answered: %s", all)
	}
}

func TestADuplicateIDInFlightIsRefused(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	first := make(chan string, 1)
	go func() {
		_, body := r.say("POST", w, callBody("same", "demo__wait", "{}"))
		first <- body
	}()
	<-r.fakeNamespace.started
	resp, body := r.say("POST", w, callBody("same", "demo__echo", "{}"))
	if resp.StatusCode != 400 || body != `{"jsonrpc":"2.0","error":{"code":-32600,"message":"a request with id \"same\" is already in flight"},"id":"same"}` {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	close(r.fakeNamespace.release)
	if body := <-first; !strings.Contains(body, `"id":"same","result"`) {
		t.Errorf("the first call was affected: %s", body)
	}
	if _, body := r.say("POST", w, callBody("same", "demo__echo", "{}")); !strings.Contains(body, "result") {
		t.Errorf("the id should be free afterwards: %s", body)
	}
}

func TestCancellationReachesTheTool(t *testing.T) {
	r := start(t, nil)
	w, other := r.join(alice), r.join(alice)
	for _, id := range []string{`"x"`, `12`} {
		answer := make(chan string, 1)
		go func() {
			_, body := r.say("POST", w, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"demo__wait"}}`)
			answer <- body
		}()
		<-r.fakeNamespace.started
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"enough"}}`
		r.say("POST", other, cancel) // the same ID in another session
		r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}`)
		select {
		case body := <-answer:
			t.Fatalf("cancelled by the wrong message: %s", body)
		case <-time.After(50 * time.Millisecond):
		}
		if resp, _ := r.say("POST", w, cancel); resp.StatusCode != 202 {
			t.Errorf("cancelled: %d", resp.StatusCode)
		}
		if err := <-r.fakeNamespace.ended; err == nil {
			t.Error("the tool's context should have been cancelled")
		}
		if body := <-answer; !strings.Contains(body, `"code":-32800`) {
			t.Errorf("the POST returned %s", body)
		}
	}
}

func TestADroppedPostDoesNotCancelTheTool(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	conn := r.dial()
	fmt.Fprint(conn, r.raw("POST", w, callBody(1, "demo__wait", "{}")))
	<-r.fakeNamespace.started
	conn.Close()
	if resp, _ := r.say("POST", w, ping); resp.StatusCode != 200 {
		t.Errorf("ping: %d", resp.StatusCode)
	}
	close(r.fakeNamespace.release)
	if err := <-r.fakeNamespace.ended; err != nil {
		t.Errorf("the tool ended with %v", err)
	}
}

func TestUnsupportedMethods(t *testing.T) {
	r := start(t, nil)
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodHead, http.MethodOptions} {
		if resp, _ := r.say(method, alice, ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST, DELETE" {
			t.Errorf("%s: %d, Allow %q", method, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
}
