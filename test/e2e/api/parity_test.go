package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// echoResultServer is an app that answers a call with exactly the bytes in the call's arguments, as a result or as an
// error.
const echoResultServer = `import json, sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    member, answer = "result", "{}"
    if request["method"] == "initialize":
        answer = json.dumps({"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                             "serverInfo": {"name": "parrot", "version": "1.0.0"}})
    elif request["method"] == "tools/list":
        answer = json.dumps({"tools": [{"name": "say", "inputSchema": {"type": "object"}}]})
    elif request["method"] == "tools/call":
        member, answer = request["params"]["arguments"]["member"], request["params"]["arguments"]["answer"]
    print('{"jsonrpc":"2.0","id":%s,"%s":%s}' % (json.dumps(request["id"]), member, answer), flush=True)
`

// Both endpoints return the same members, byte for byte. /v1 adds "result", which is the text, or the JSON value if the
// text is JSON. It also adds isError if the app did not send it.
func TestACallReturnsTheSameThroughBothEndpoints(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	dir := harness.Bundle(t, map[string]any{"name": "@e2e/parrot", "server": map[string]any{
		"type": "python", "entry_point": "server.py",
		"mcp_config": map[string]any{"command": "python3", "args": []string{"${__dirname}/server.py"}},
	}})
	harness.WriteFile(t, filepath.Join(dir, "server.py"), echoResultServer)
	s.Install(t, map[string]any{"path": dir})
	session := s.OpenSession(t)

	for _, c := range []struct{ name, response, result string }{
		{"text", `{"content":[{"type":"text","text":"gr\u00fc\u00df \"dich\"\n"}]}`, `"grüß \"dich\"\n"`},
		{"text that is JSON", `{"content":[{"type":"text","text":"{\"n\": 12345678901234567890.50}"}],"isError":false}`, `{"n":12345678901234567890.50}`},
		{"several texts, with annotations", `{"content":[{"type":"text","text":"one","annotations":{"priority":1.0}},{"type":"text","text":"two"}]}`, `"one\ntwo"`},
		{
			"structured content, with numbers that no float can hold",
			`{"content":[{"type":"text","text":"21"}],"structuredContent":{"z":9007199254740993,"a":1.0,"nested":{"list":[null,true]}},"_meta":{"trace":"t-1"}}`, `21`,
		},
		{"a failure", `{"content":[{"type":"text","text":"the disk is full"}],"isError":true}`, `"the disk is full"`},
		{
			"a resource link",
			`{"content":[{"type":"resource_link","uri":"parrot://files/1","name":"one","title":"One","mimeType":"text/plain","size":12,"_meta":{"x":1}}]}`, `""`,
		},
		{"an embedded resource", `{"content":[{"type":"resource","resource":{"uri":"parrot://a","mimeType":"text/plain","text":"inside"}}]}`, `""`},
		{"a picture and text", `{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"text","text":"hello"}]}`, `"hello"`},
		{"members that no revision has", `{"content":[],"later":{"b":1.00,"a":[]}}`, `""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			direct, composed := callBoth(t, s, session, map[string]any{"member": "result", "answer": c.response})
			var want map[string]json.RawMessage
			if json.Unmarshal([]byte(c.response), &want) != nil {
				t.Fatal("the response in this case is not JSON")
			}
			same(t, "/mcp", composed["result"], []byte(c.response))
			var result bytes.Buffer
			if err := json.Compact(&result, direct["result"]); err != nil || result.String() != c.result {
				t.Errorf("/v1 has the result %s, want %s", direct["result"], c.result)
			}
			if want["isError"] == nil {
				want["isError"] = json.RawMessage("false")
			}
			want["result"] = direct["result"]
			if len(direct) != len(want) {
				t.Errorf("/v1 returned %s", direct)
			}
			for member, value := range want {
				same(t, "/v1 "+member, direct[member], value)
			}
		})
	}

	t.Run("an error from the app itself", func(t *testing.T) {
		direct, composed := callBoth(t, s, session, map[string]any{"member": "error", "answer": `{"code":-32042,"message":"not today","data":{"n":1.0}}`})
		same(t, "/mcp", composed["error"], []byte(`{"code":-32042,"message":"not today","data":{"n":1.0}}`))
		same(t, "/v1 content", direct["content"], []byte(`[{"type":"text","text":"not today"}]`))
		same(t, "/v1 isError", direct["isError"], []byte(`true`))
	})
}

// callBoth calls the tool through /v1/tools/call and through /mcp. It returns the members of both responses.
func callBoth(t *testing.T, s *harness.Server, session *harness.MCPClient, arguments map[string]any) (direct, composed map[string]json.RawMessage) {
	t.Helper()
	a := s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "parrot", "tool": "say", "arguments": arguments})
	if a.Status != http.StatusOK || json.Unmarshal([]byte(a.Body), &direct) != nil {
		t.Fatalf("/v1: %d %s", a.Status, a.Body)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	status, _, body, err := session.Post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"parrot__say","arguments":`+string(raw)+`}}`)
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &composed) != nil {
		t.Fatalf("/mcp: %d %s %v", status, body, err)
	}
	return direct, composed
}

// same compares two JSON texts byte by byte, ignoring white space between tokens.
func same(t *testing.T, what string, got, want json.RawMessage) {
	t.Helper()
	var a, b bytes.Buffer
	if json.Compact(&a, got) != nil || json.Compact(&b, want) != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}
