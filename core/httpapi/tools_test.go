package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

func TestToolResultsAreUnchangedExceptForAnAddedResult(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []struct{ name, raw, want string }{
		{"text", `{"content":[{"type":"text","text":"hello"}]}`, `{"content":[{"type":"text","text":"hello"}],"isError":false,"result":"hello"}`},
		{"text that is JSON", `{"content":[{"type":"text","text":"{\"a\": [1, null]}"}]}`, `{"content":[{"type":"text","text":"{\"a\": [1, null]}"}],"isError":false,"result":{"a": [1, null]}}`},
		{"a number above 53 bits", `{"content":[{"type":"text","text":"12345678901234567890.10"}]}`, `{"content":[{"type":"text","text":"12345678901234567890.10"}],"isError":false,"result":12345678901234567890.10}`},
		{"a JSON string", `{"content":[{"type":"text","text":"\"x\""}]}`, `{"content":[{"type":"text","text":"\"x\""}],"isError":false,"result":"x"}`},
		{"JSON with text after it", `{"content":[{"type":"text","text":"{} x"}]}`, `{"content":[{"type":"text","text":"{} x"}],"isError":false,"result":"{} x"}`},
		{"several texts", `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b"}]}`, `{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b"}],"isError":false,"result":"a\nb"}`},
		{"an invalid part", `{"content":[{"type":"text","text":5},"x",{"type":"text","text":"a"}]}`, `{"content":[{"type":"text","text":5},"x",{"type":"text","text":"a"}],"isError":false,"result":"a"}`},
		{"no content", `{}`, `{"content":[],"isError":false,"result":""}`},
		{"content null", `{"content":null}`, `{"content":[],"isError":false,"result":""}`},
		{"the tool's own error", `{"content":[{"type":"text","text":"no"}],"isError":true}`, `{"content":[{"type":"text","text":"no"}],"isError":true,"result":"no"}`},
		{"structured content, links, meta and unknown members", `{"_meta":{"k":"<&>"},"structuredContent":{"n":1.0,"big":9007199254740993},"content":[{"type":"resource_link","uri":"ui://a","name":"a","x":1}],"new":[ 1 ]}`,
			`{"_meta":{"k":"<&>"},"structuredContent":{"n":1.0,"big":9007199254740993},"content":[{"type":"resource_link","uri":"ui://a","name":"a","x":1}],"new":[ 1 ],"isError":false,"result":""}`},
		{"an isError of the wrong type", `{"content":[],"isError":"yes"}`, `{"content":[],"isError":false,"result":""}`},
		{"a member result set by the app", `{"content":[],"result":"theirs"}`, `{"content":[],"result":"","isError":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.tools.result = c.raw
			r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"server":"a","tool":"b"}`})
			if r.StatusCode != 200 || r.body != c.want || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d\n got %s\nwant %s", r.StatusCode, r.body, c.want)
			}
		})
	}
}

func TestAnInvalidToolResultIsReportedAsAToolError(t *testing.T) {
	h := open(t, newAccess(), nil)
	want := `{"content":[{"type":"text","text":"the app returned an invalid tool result"}],"isError":true,"result":"the app returned an invalid tool result"}`
	for _, raw := range []string{`[]`, `null`, `"x"`} {
		h.tools.result = raw
		if r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}); r.StatusCode != 200 || r.body != want {
			t.Errorf("%s: %d %s", raw, r.StatusCode, r.body)
		}
	}
}

func TestToolNames(t *testing.T) {
	h := open(t, newAccess(), nil)
	for body, name := range map[string]string{
		`{"server":"a","tool":"b"}`:    "a__b",
		`{"tool":"a__b"}`:              "a__b",
		`{"server":"","tool":"a__b"}`:  "a__b",
		`{"server":"a","tool":"b__c"}`: "a__b__c", // a tool's own name may contain the separator
	} {
		h.tools.calls = nil
		r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: body})
		if r.StatusCode != 200 || h.tools.calls[0].Name != name {
			t.Errorf("%s: %d, called %v", body, r.StatusCode, h.tools.calls)
		}
	}
}

func TestACallIsMadeAsAPersonAndItsInputIsChecked(t *testing.T) {
	h := open(t, newAccess(), nil)
	h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b","arguments":{ "x" : 1.50 }}`})
	got := h.tools.calls[0]
	if got.Agent || !got.CheckInput || string(got.Arguments) != `{ "x" : 1.50 }` || h.tools.keep[0].User.ID != "usr_owner" {
		t.Errorf("%+v by %+v", got, h.tools.keep[0])
	}
}

func TestNullIsTreatedAsAbsentInAToolCall(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"server":null,"tool":"a__b","account":null,"arguments":null,"_meta":null}`})
	if r.StatusCode != 200 || h.tools.calls[0].Arguments != nil || h.tools.calls[0].Meta != nil {
		t.Errorf("%d %s, called %+v", r.StatusCode, r.body, h.tools.calls)
	}
}

func TestErrorsFromToolCalls(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{core.Errorf(core.CodeToolNotFound, "m"), 404, `{"error":"tool_not_found","message":"m"}`},
		{core.Errorf(core.CodeFeatureDisabled, "m"), 403, `{"error":"feature_disabled","message":"m"}`},
		{core.Errorf(core.CodeForbidden, "m"), 403, `{"error":"forbidden","message":"m"}`},
		{core.Errorf(core.CodeInvalidInput, "m").WithDetails(map[string]any{"errors": []map[string]string{{"path": "/x", "message": "is missing"}}}), 400,
			`{"error":"invalid_input","message":"m","details":{"errors":[{"message":"is missing","path":"/x"}]}}`},
		{core.Errorf(core.CodeUnavailable, "m"), 503, `{"error":"unavailable","message":"m"}`},
		{&rpc.Error{Code: -32602, Message: "bad \"x\"", Data: json.RawMessage(`{"d":1}`)}, 200, `{"content":[{"type":"text","text":"bad \"x\""}],"isError":true,"result":"bad \"x\""}`},
	} {
		h.tools.err = c.err
		if r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b"}`}); r.StatusCode != c.status || r.body != c.body {
			t.Errorf("%d %s\nwant %d %s", r.StatusCode, r.body, c.status, c.body)
		}
	}
	h.tools.err = core.Errorf(core.CodeToolNotFound, "m") // 400 bad_request takes precedence
	if r := h.do(t, call{method: "POST", path: "/v1/tools/call", body: `{"tool":"a__b","arguments":1}`}); r.StatusCode != 400 || r.code() != "bad_request" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
