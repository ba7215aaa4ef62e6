package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/openai"
)

// serve answers every request with these chunks, and returns the body and header of the request.
func serve(t *testing.T, chunks ...string) (p *openai.Provider, body *map[string]any, header *http.Header) {
	t.Helper()
	body, header = &map[string]any{}, &http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, body)
		*header = r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunks {
			_, _ = io.WriteString(w, "data: "+c+"\n\n")
		}
	}))
	t.Cleanup(server.Close)
	p = openai.New(model.Settings{BaseURL: server.URL})
	t.Cleanup(p.Close)
	return p, body, header
}

const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`

func TestRequestsAndAnswersMatchTheDocumentation(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	p, body, header := serve(t,
		`{"id":"1","choices":[{"index":0,"delta":{"content":"Hi"}}]}`,
		`{"id":"2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"u"}}]}}]}`,
		`{"id":"2","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
		stop, `{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":40}}}`, "[DONE]")
	text := ""
	answer, err := p.Call(t.Context(), "m", model.Request{
		System: []string{"a", "b"}, MaxTokens: 7,
		Messages: []model.Message{
			model.TextMessage(model.User, "x"),
			{Role: model.Assistant, Blocks: []model.Block{{Kind: model.ToolUse, ID: "c", Name: "t.2", Input: json.RawMessage(`{"k":1}`)}}},
			{Role: model.User, Blocks: []model.Block{{Kind: model.ToolResult, ID: "c", Text: "r"}, {Kind: model.Text, Text: "y"}}},
		},
	}, model.Pieces{Text: func(s string) { text += s }})
	if err != nil || text != "Hi" || answer.Usage != (model.Usage{Input: 10, Output: 9, CacheRead: 40}) {
		t.Fatalf("%+v, %q, %v", answer, text, err)
	}
	if b := answer.Blocks; len(b) != 3 || b[1].Name != "t" || string(b[1].Input) != `{"x":1}` || b[2].ID != "b" || string(b[2].Input) != `{}` {
		t.Errorf("blocks %+v", b)
	}
	if header.Get("Authorization") != "" || header.Get("OpenAI-Organization") != "" {
		t.Errorf("the request has the headers %v", *header)
	}
	want := `[{"content":"a\n\nb","role":"system"},{"content":"x","role":"user"},` +
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"k\":1}","name":"` + model.SafeName("t.2") + `"},"id":"c","type":"function"}]},` +
		`{"content":"r","role":"tool","tool_call_id":"c"},{"content":"y","role":"user"}]`
	if got, _ := json.Marshal((*body)["messages"]); string(got) != want {
		t.Errorf("messages\n got %s\nwant %s", got, want)
	}
	if (*body)["max_tokens"] != 7.0 || (*body)["max_completion_tokens"] != nil {
		t.Errorf("the limit is sent as %v", *body)
	}
}

func TestAnErrorOrAnEarlyEndOfTheStreamIsAFailure(t *testing.T) {
	for chunk, want := range map[string]model.Failure{
		`{"error":{"message":"This model's maximum context length is 8 tokens","code":400}}`: model.TooLong,
		`{"error":{"message":"upstream","type":"server"}}`:                                   model.Broken,
		`{"object":"error","message":"maximum context length is 8 tokens","code":400}`:       model.TooLong,
		`{"detail":"This model's maximum context length is 8 tokens"}`:                       model.TooLong,
		`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`:                                 model.Broken,
		`{not json`: model.Broken,
	} {
		p, _, _ := serve(t, chunk)
		_, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
		known, ok := errors.AsType[*model.Error](err)
		if !ok || known.Failure != want {
			t.Errorf("%s gives %v", chunk, err)
		}
	}
}

func TestAnIncompleteCallIsLeftOut(t *testing.T) {
	p, _, _ := serve(t, `{"choices":[{"index":0,"delta":{"content":"Hi","tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"x\""}}]}}]}`)
	answer, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
	if err == nil || len(answer.Blocks) != 1 || answer.Text() != "Hi" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestCallsWithoutDistinctIndexesAreSeparated(t *testing.T) {
	for name, ids := range map[string][2]string{"by their ids": {`"id":"a",`, `"id":"b",`}, "by a name after a whole input": {"", ""}} {
		t.Run(name, func(t *testing.T) {
			p, _, _ := serve(t,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{`+ids[0]+`"function":{"name":"t","arguments":"{\"x\":"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{`+ids[0]+`"function":{"arguments":"1}"}}]}}]}`,
				`{"choices":[{"index":0,"delta":{"tool_calls":[{`+ids[1]+`"function":{"name":"u","arguments":"{}"}}]}}]}`, stop, "[DONE]")
			answer, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
			if b := answer.Blocks; err != nil || len(b) != 2 || b[0].Name != "t" || string(b[0].Input) != `{"x":1}` || b[1].Name != "u" || string(b[1].Input) != `{}` {
				t.Errorf("blocks %+v, %v", b, err)
			}
		})
	}
}

func TestTheRequestMatchesTheVendorsDocumentation(t *testing.T) {
	p, body, header := serve(t, stop, "[DONE]")
	_, err := p.Call(t.Context(), "m", model.Request{
		MaxTokens: 7, Tools: []model.Tool{{Name: "a__b", Description: "d", Schema: json.RawMessage(`{"properties":{"x":{"type":"string"}},"required":["x"]}`)}},
		Messages: []model.Message{{Role: model.User, Blocks: []model.Block{
			{Kind: model.File, Name: "a.png", MIMEType: "image/png", Data: []byte("png")},
			{Kind: model.File, Name: "b.png", MIMEType: "image/png", URL: "https://example.com/b.png"},
			{Kind: model.File, Name: "c.pdf", MIMEType: "application/pdf", Data: []byte("pdf")},
			{Kind: model.File, Name: "d.txt", MIMEType: "text/plain", Data: []byte("words")},
			{Kind: model.Text, Text: "look"},
		}}},
	}, model.Pieces{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"max_tokens":7,"messages":[{"content":[` +
		`{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"},` +
		`{"image_url":{"url":"https://example.com/b.png"},"type":"image_url"},` +
		`{"file":{"file_data":"data:application/pdf;base64,cGRm","filename":"c.pdf"},"type":"file"},` +
		`{"text":"\u003cattachment name=\"d.txt\"\u003e\nwords\n\u003c/attachment\u003e","type":"text"},` +
		`{"text":"look","type":"text"}],"role":"user"}],` +
		`"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"function":{"description":"d","name":"a__b",` +
		`"parameters":{"properties":{"x":{"type":"string"}},"required":["x"],"type":"object"}},"type":"function"}]}`
	if got, _ := json.Marshal(*body); string(got) != want {
		t.Errorf("body\n got %s\nwant %s", got, want)
	}
	if header.Get("Content-Type") != "application/json" || header.Get("Accept") != "text/event-stream" {
		t.Errorf("headers %v", *header)
	}
}

func TestDifferentFormsOfServerResponsesAreUnderstood(t *testing.T) {
	p, _, _ := serve(t,
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":null},"finish_reason":null}],"usage":null,"error":null}`,
		`{"choices":[{"index":0,"delta":{"content":"\ud83d\ude00 \"é\""}}],"created":"a string"}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":{"x":1}}}]}}]}`,
		stop, "[DONE]")
	answer, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
	if err != nil || answer.Text() != "\U0001f600 \"é\"" || len(answer.Blocks) != 2 || string(answer.Blocks[1].Input) != `{"x":1}` {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestANameRepeatedInEveryChunkIsUsedOnce(t *testing.T) {
	for name, chunks := range map[string][]string{
		"with the id": {
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{\"x\""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":":1}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":""}}]}}]}`,
		},
		"without it": {
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":"{\"x\""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":":1}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"echo","arguments":""}}]}}]}`,
		},
		"in two parts": {
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ec"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"ho","arguments":"{\"x\":1}"}}]}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, _ := serve(t, append(chunks, stop, "[DONE]")...)
			answer, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
			if b := answer.Blocks; err != nil || len(b) != 1 || b[0].Name != "echo" || string(b[0].Input) != `{"x":1}` {
				t.Errorf("blocks %+v, %v", b, err)
			}
		})
	}
}

func TestAWholeMessageIsUsedIfNoChunksArrive(t *testing.T) {
	const message = `{"role":"assistant","content":"Hi","tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{\"x\":1}"}}]}`
	for name, chunks := range map[string][]string{
		"message instead of delta": {`{"choices":[{"index":0,"message":` + message + `,"finish_reason":"tool_calls"}]}`, "[DONE]"},
		"message after the pieces": {
			`{"choices":[{"index":0,"delta":` + message + `}]}`, `{"choices":[{"index":0,"delta":{},"message":` + message + `,"finish_reason":"tool_calls"}]}`, "[DONE]",
		},
		"not a stream": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p, _, _ := serve(t, chunks...)
			if chunks == nil {
				p = serveJSON(t, `{"choices":[{"index":0,"message":`+message+`,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`)
			}
			text := ""
			answer, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{Text: func(s string) { text += s }})
			if b := answer.Blocks; err != nil || text != "Hi" || len(b) != 2 || b[0].Text != "Hi" || b[1].Name != "t" || string(b[1].Input) != `{"x":1}` {
				t.Errorf("%q, blocks %+v, %v", text, b, err)
			}
			if chunks == nil && answer.Usage != (model.Usage{Input: 3, Output: 4}) {
				t.Errorf("usage %+v", answer.Usage)
			}
		})
	}
}

func TestAJSONErrorWithStatus200IsAFailure(t *testing.T) {
	for body, want := range map[string]model.Failure{
		`{"error":{"message":"upstream","type":"server"}}`: model.Broken,
		`{"choices":[{"message":{"content":"Hi"`:           model.Broken,
		`{"object":"something else"}`:                      model.Broken,
	} {
		_, err := serveJSON(t, body).Call(t.Context(), "m", model.Request{Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
		if known, ok := errors.AsType[*model.Error](err); !ok || known.Failure != want {
			t.Errorf("%s gives %v", body, err)
		}
	}
}

// serveJSON answers every request with this body, which is not a stream.
func serveJSON(t *testing.T, body string) *openai.Provider {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	p := openai.New(model.Settings{BaseURL: server.URL})
	t.Cleanup(p.Close)
	return p
}

func TestAnErrorResponseHasItsStatusKindAndDelay(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   model.Failure
	}{
		"too many requests":   {429, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, model.RateLimited},
		"no quota":            {429, `{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}`, model.Refused},
		"a number for a code": {401, `{"error":{"message":"no","code":401}}`, model.Auth},
		"too long":            {400, `{"error":{"message":"m","code":"context_length_exceeded"}}`, model.TooLong},
		"not JSON":            {500, `<html>`, model.ServerError},
		"a redirect":          {302, ``, model.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(server.Close)
			p := openai.New(model.Settings{BaseURL: server.URL, APIKey: "k"})
			t.Cleanup(p.Close)
			_, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{})
			known, ok := errors.AsType[*model.Error](err)
			if !ok || known.Failure != c.want || known.Status != c.status || known.RetryAfter.Seconds() != 7 {
				t.Errorf("%+v", err)
			}
		})
	}
}

// calls returns the calls of an answer as text.
func calls(a model.Answer) (all []string) {
	for _, b := range a.Blocks {
		if b.Kind == model.ToolUse {
			all = append(all, b.Name+" "+string(b.Input))
		}
	}
	return all
}

func TestCallsAreDistinguishedWhateverTheirIds(t *testing.T) {
	piece := func(rest, name, arguments string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[{` + rest + `"function":{"name":"` + name + `","arguments":` + string(quote(arguments)) + `}}]}}]}`
	}
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"a new id for each piece":       {[]string{piece(`"index":0,"id":"1",`, "t", ""), piece(`"index":0,"id":"2",`, "", `{"x"`), piece(`"index":0,"id":"3",`, "", `:1}`)}, `t {"x":1}`},
		"the tool's name as the id":     {[]string{piece(`"id":"t",`, "t", `{"x":1}`), piece(`"id":"t",`, "t", `{"x":2}`)}, `t {"x":1}, t {"x":2}`},
		"in pieces":                     {[]string{piece(`"id":"t",`, "t", `{"x":1}`), piece(`"id":"t",`, "t", `{"x"`), piece(`"id":"t",`, "", `:2}`)}, `t {"x":1}, t {"x":2}`},
		"the whole call again":          {[]string{piece(`"index":0,"id":"1",`, "t", `{"x"`), piece(`"index":0,"id":"1",`, "", `:1}`), piece(`"index":0,"id":"1",`, "t", `{"x":1}`)}, `t {"x":1}`},
		"an empty input before another": {[]string{piece(`"index":0,"id":"1",`, "t", `{}`), piece(`"index":0,`, "", `{"x":1}`)}, `t {"x":1}`},
		"an empty input":                {[]string{piece(`"index":0,"id":"1",`, "t", `{}`), piece(`"index":0,`, "", "")}, `t {}`},
	} {
		p, _, _ := serve(t, append(c.chunks, stop, "[DONE]")...)
		answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{})
		if got := strings.Join(calls(answer), ", "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestAStreamThatEndsWithDoneButWithoutAFinishReasonMustHaveACompleteAnswer(t *testing.T) {
	for chunk, whole := range map[string]bool{
		`{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`:                                                 true,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"x\":1}"}}]}}]}`: true,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"x\""}}]}}]}`:    false,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":""}}]}}]}`:          false,
		`{"choices":[{"index":0,"delta":{}}]}`: false,
	} {
		p, _, _ := serve(t, chunk, "[DONE]")
		if answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{}); (err == nil) != whole {
			t.Errorf("%s gives %+v, %v", chunk, answer, err)
		}
	}
}

func TestUsageIsFoundWhereServersPutIt(t *testing.T) {
	for chunk, want := range map[string]model.Usage{
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}]}`:   {Input: 3, Output: 4},
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":100}}`: {Input: 3, Output: 97},
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`:                    {Input: 3, Output: 4},
	} {
		p, _, _ := serve(t, chunk, "[DONE]")
		if answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{}); err != nil || answer.Usage != want {
			t.Errorf("%s gives %+v, %v", chunk, answer.Usage, err)
		}
	}
}

func TestEmptyEventsAndSpaceBeforeJSONAreSkipped(t *testing.T) {
	const message = `{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}`
	p, _, _ := serve(t, "", message, "[DONE]")
	for name, p := range map[string]*openai.Provider{"events": p, "JSON": serveJSON(t, "\n \n"+message)} {
		if answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{}); err != nil || answer.Text() != "Hi" {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
}
