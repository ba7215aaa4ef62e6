package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/anthropic"
)

// respond answers every request with the same response.
func respond(t *testing.T, status int, body string) *anthropic.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	p := anthropic.New(model.Settings{BaseURL: server.URL, APIKey: "k"})
	t.Cleanup(p.Close)
	return p
}

func TestARecordedStreamIsParsed(t *testing.T) {
	recorded, err := os.ReadFile("testdata/stream.txt")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	answer, err := respond(t, http.StatusOK, string(recorded)).Call(t.Context(), "m", model.Request{}, model.Pieces{Text: func(s string) { text += s }})
	want := model.Answer{
		Usage: model.Usage{Input: 472, Output: 89, CacheRead: 2048, CacheWrite: 12},
		Blocks: []model.Block{
			{Kind: model.Reasoning, Text: "The weather tool fits.", Raw: json.RawMessage(`{"type": "thinking", "thinking": "The weather tool fits.", "signature": "EqQBCgIYAhIM"}`)},
			{Kind: model.Text, Text: "Okay, let's check the weather for San Francisco, CA:"},
			{Kind: model.ToolUse, ID: "toolu_01T1x1fJ34qAmk2tNTrN7Up6", Name: "get_weather", Input: json.RawMessage(`{"location": "San Francisco, CA", "unit": "fahrenheit"}`)},
			{Kind: model.ToolUse, ID: "toolu_02", Name: "now", Input: json.RawMessage("{}")},
		},
	}
	if len(answer.Blocks) > 0 {
		answer.Blocks[0].Ms = 0
	}
	if err != nil || !reflect.DeepEqual(answer, want) || text != want.Blocks[1].Text {
		t.Errorf("%v\n got %+v\nwant %+v\nsaid %q", err, answer, want, text)
	}
}

func TestAnIncompleteCallIsLeftOut(t *testing.T) {
	const begin = "data: {\"type\":\"message_start\",\"message\":{}}\n\n" +
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\"input\":{}}}\n\n" +
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\"\"}}\n\n"
	for name, c := range map[string]struct {
		rest string
		cut  bool
		want model.Failure
	}{
		"the length limit":   {rest: "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n", cut: true},
		"a truncated stream": {want: model.Broken},
		"not JSON":           {rest: "data: {\"type\"\n\n", want: model.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := respond(t, http.StatusOK, begin+c.rest).Call(t.Context(), "m", model.Request{}, model.Pieces{})
			known, failed := errors.AsType[*model.Error](err)
			if len(answer.Blocks) != 0 || (answer.End == model.EndLength) != c.cut || failed == c.cut || failed && known.Failure != c.want {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
}

func TestEarlierMessagesAreSent(t *testing.T) {
	var body struct{ Messages json.RawMessage }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&body)
		_, _ = io.WriteString(w, "data: {\"type\":\"message_stop\"}\n\n")
	}))
	defer server.Close()
	p := anthropic.New(model.Settings{BaseURL: server.URL})
	defer p.Close()
	if _, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{
		{Role: model.Assistant, Blocks: []model.Block{{Kind: model.ToolUse, ID: "c", Name: "t.2", Input: json.RawMessage(`{"k":1}`)}, {Kind: model.ToolUse, ID: "d", Name: "u", Input: json.RawMessage(`[1]`)}}},
		{Role: model.User, Blocks: []model.Block{{Kind: model.ToolResult, ID: "c", Text: "r"}, {Kind: model.ToolResult, ID: "d", Error: true}}},
	}}, model.Pieces{}); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"` + model.SafeName("t.2") + `","input":{"k":1}},{"type":"tool_use","id":"d","name":"u","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"}]},` +
		`{"type":"tool_result","tool_use_id":"d","is_error":true,"cache_control":{"type":"ephemeral"}}]}]`
	if string(body.Messages) != want {
		t.Errorf("messages\n got %s\nwant %s", body.Messages, want)
	}
}

func TestAnErrorResponseHasItsStatusKindAndDelay(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   model.Failure
	}{
		"too many requests": {429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, model.RateLimited},
		"an invalid key":    {401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, model.Auth},
		"too long":          {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, model.TooLong},
		"overloaded":        {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.Overloaded},
		"not JSON":          {500, `<html>`, model.ServerError},
		"a redirect":        {302, ``, model.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := respond(t, c.status, c.body).Call(t.Context(), "m", model.Request{}, model.Pieces{})
			known, ok := errors.AsType[*model.Error](err)
			if !ok || known.Failure != c.want || known.Status != c.status || known.RetryAfter.Seconds() != 7 {
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestBlocksWithTheSameIndexAreKeptApart(t *testing.T) {
	answer, err := respond(t, http.StatusOK, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\"input\":{}}}\n\n"+
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":1}\"}}\n\n"+
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"t\",\"input\":{}}}\n\n"+
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":2}\"}}\n\n"+
		"data:\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n").Call(t.Context(), "m", model.Request{}, model.Pieces{})
	if b := answer.Blocks; err != nil || len(b) != 2 || string(b[0].Input) != `{"x":1}` || string(b[1].Input) != `{"x":2}` {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestAWholeMessageInsteadOfAStreamIsUsed(t *testing.T) {
	const message = ` {"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"text","text":"Hi"},{"type":"tool_use","id":"a","name":"t","input":{"x":1.50}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`
	text := ""
	answer, err := respond(t, http.StatusOK, message).Call(t.Context(), "m", model.Request{}, model.Pieces{Text: func(s string) { text += s }})
	if b := answer.Blocks; err != nil || text != "Hi" || len(b) != 3 || !strings.Contains(string(b[0].Raw), `"signature":"s=="`) || string(b[2].Input) != `{"x":1.50}` || answer.Usage != (model.Usage{Input: 3, Output: 4}) {
		t.Errorf("%q, %+v, %v", text, answer, err)
	}
	_, err = respond(t, http.StatusOK, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`).Call(t.Context(), "m", model.Request{}, model.Pieces{})
	if known, ok := errors.AsType[*model.Error](err); !ok || known.Failure != model.Overloaded {
		t.Errorf("%+v", err)
	}
}
