package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/anthropic"
)

// The ends of the tools, the system prompt and the conversation are marked for caching. Keys and addresses in the
// environment are ignored.
func TestRequestsAreSentAsDocumented(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	var body map[string]any
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		header = r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":40,\"cache_creation_input_tokens\":5,\"output_tokens\":1}}}\n\n"+
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}))
	defer server.Close()
	p := anthropic.New(model.Settings{BaseURL: server.URL, APIKey: "k"})
	defer p.Close()
	answer, err := p.Call(t.Context(), "m", model.Request{
		System: []string{"a", "b"}, MaxTokens: 7, Messages: []model.Message{model.TextMessage(model.User, "x"), model.TextMessage(model.Assistant, "y"), model.TextMessage(model.User, "z")},
		Tools: []model.Tool{{Name: "t1"}, {Name: "t.2", Description: "d", Schema: json.RawMessage(`{"type":"object","properties":{"a":{}},"additionalProperties":false}`)}},
	}, model.Pieces{})
	if err != nil || answer.Usage != (model.Usage{Input: 3, Output: 9, CacheRead: 40, CacheWrite: 5}) {
		t.Errorf("%+v, %v", answer, err)
	}
	if header.Get("X-Api-Key") != "k" || header.Get("Authorization") != "" {
		t.Errorf("the request has the headers %v, in a process that has %s", header, os.Getenv("ANTHROPIC_API_KEY"))
	}
	for part, want := range map[string]string{
		"system":   `[{"text":"a","type":"text"},{"cache_control":{"type":"ephemeral"},"text":"b","type":"text"}]`,
		"tools":    `[{"input_schema":{"properties":{},"type":"object"},"name":"t1"},{"cache_control":{"type":"ephemeral"},"description":"d","input_schema":{"additionalProperties":false,"properties":{"a":{}},"type":"object"},"name":"` + model.SafeName("t.2") + `"}]`,
		"messages": `[{"content":[{"text":"x","type":"text"}],"role":"user"},{"content":[{"text":"y","type":"text"}],"role":"assistant"},{"content":[{"cache_control":{"type":"ephemeral"},"text":"z","type":"text"}],"role":"user"}]`,
	} {
		if got, _ := json.Marshal(body[part]); string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", part, got, want)
		}
	}
}

func TestAnErrorOrSilenceInTheStreamIsAFailure(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n")
		_ = http.NewResponseController(w).Flush()
		if strings.Contains(string(raw), "silent") {
			<-over
			return
		}
		_, _ = io.WriteString(w, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
	}))
	defer server.Close()
	defer close(over)
	p := anthropic.New(model.Settings{BaseURL: server.URL, APIKey: "k", Idle: 100 * time.Millisecond})
	defer p.Close()
	for name, want := range map[string]model.Failure{"loud": model.Overloaded, "silent": model.Broken} {
		_, err := p.Call(t.Context(), name, model.Request{MaxTokens: 1, Messages: []model.Message{model.TextMessage(model.User, "x")}}, model.Pieces{})
		known, ok := errors.AsType[*model.Error](err)
		if !ok || known.Failure != want {
			t.Errorf("%s gives %v", name, err)
		}
	}
}

func TestFilesAreSentAsTheVendorDocuments(t *testing.T) {
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}))
	defer server.Close()
	p := anthropic.New(model.Settings{BaseURL: server.URL, APIKey: "k"})
	defer p.Close()
	if _, err := p.Call(t.Context(), "m", model.Request{MaxTokens: 7, Messages: []model.Message{{Role: model.User, Blocks: []model.Block{
		{Kind: model.File, Name: "a.png", MIMEType: "image/png", Data: []byte("png")},
		{Kind: model.File, Name: "b.png", MIMEType: "image/png", URL: "https://example.com/b.png"},
		{Kind: model.File, Name: "c.pdf", MIMEType: "application/pdf", Data: []byte("pdf")},
		{Kind: model.File, Name: "d.txt", MIMEType: "text/plain", Data: []byte("words")},
		{Kind: model.Text, Text: "look"},
	}}}}, model.Pieces{}); err != nil {
		t.Fatal(err)
	}
	want := `[{"content":[{"source":{"data":"cG5n","media_type":"image/png","type":"base64"},"type":"image"},` +
		`{"source":{"type":"url","url":"https://example.com/b.png"},"type":"image"},` +
		`{"source":{"data":"cGRm","media_type":"application/pdf","type":"base64"},"title":"c.pdf","type":"document"},` +
		`{"text":"\u003cattachment name=\"d.txt\"\u003e\nwords\n\u003c/attachment\u003e","type":"text"},` +
		`{"cache_control":{"type":"ephemeral"},"text":"look","type":"text"}],"role":"user"}]`
	if got, _ := json.Marshal(body["messages"]); string(got) != want {
		t.Errorf("messages\n got %s\nwant %s", got, want)
	}
}

func TestWhatAModelRejectsIsLearnedAndRemembered(t *testing.T) {
	for name, c := range map[string]struct{ words, refused, wanted string }{
		"a limit above the model's": {"max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m", `"max_tokens":8192`, `"max_tokens":4096`},
		"cache marks":               {"messages.0.content.0.text.cache_control: Extra inputs are not permitted", `cache_control`, `"messages"`},
		"an effort":                 {"output_config.effort: Input should be 'low', 'medium' or 'high'", `"effort":"max"`, `"effort":"high"`},
		"adaptive thinking":         {"thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags", `"adaptive"`, `"enabled"`},
	} {
		t.Run(name, func(t *testing.T) {
			bodies := askRefusing(t, c.words, c.refused)
			if last := bodies[len(bodies)-1]; len(bodies) > 3 || !strings.Contains(last, c.wanted) {
				t.Errorf("%d requests, the last is %s", len(bodies), last)
			}
		})
	}
}

// Thinking needs the thoughts of the last tool call, which another model's call does not have.
func TestAnotherModelsToolCallIsContinuedWithoutThinking(t *testing.T) {
	words := "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"
	bodies := askRefusing(t, words, `"thinking":{`)
	if len(bodies) != 4 { // the next conversation may think again
		t.Errorf("%d requests: %s", len(bodies), bodies)
	}
}

// askRefusing calls a model twice with the greatest effort; more comes before the person's text. The model refuses requests
// that contain refused, with words as the error message. askRefusing returns the bodies of all requests.
func askRefusing(t *testing.T, words, refused string, more ...model.Block) (bodies []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(raw))
		if strings.Contains(string(raw), refused) {
			quoted, _ := json.Marshal(words)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":`+string(quoted)+`}}`)
			return
		}
		_, _ = io.WriteString(w, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	}))
	defer server.Close()
	p := anthropic.New(model.Settings{BaseURL: server.URL, APIKey: "k"})
	defer p.Close()
	for range 2 {
		r := model.Request{MaxTokens: 8192, Effort: "max", Messages: []model.Message{{Role: model.User, Blocks: append(more, model.Block{Kind: model.Text, Text: "x"})}}}
		if _, err := p.Call(t.Context(), "m", r, model.Pieces{}); err != nil {
			t.Fatalf("%v after %s", err, bodies[len(bodies)-1])
		}
	}
	return bodies
}

// https://docs.anthropic.com/en/api/messages: all content must be text if is_error is true.
func TestAFailedResultWithImagesIsNotMarkedAsAnError(t *testing.T) {
	var ignored, bodies []string
	p := anthropic.New(model.Settings{BaseURL: serveEvents(t, []string{`{"type":"message_stop"}`}, &ignored, &bodies)})
	t.Cleanup(p.Close)
	image := model.Block{Kind: model.File, MIMEType: "image/png", Data: []byte("png")}
	if _, err := p.Call(t.Context(), "m", model.Request{Messages: []model.Message{{Role: model.User, Blocks: []model.Block{
		{Kind: model.ToolResult, ID: "c", Text: "It failed.", Error: true, Files: []model.Block{image}}, {Kind: model.ToolResult, ID: "d", Text: "So did this.", Error: true},
	}}}}, model.Pieces{}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(bodies[0], `"is_error":true`) != 1 || !strings.Contains(bodies[0], `"It failed."},{"type":"image"`) || !strings.Contains(bodies[0], `"So did this."}],"is_error":true`) {
		t.Errorf("%s", bodies[0])
	}
}

func TestAFileThatTheModelCannotReadIsLeftOutOfItsConversation(t *testing.T) {
	for _, words := range []string{"messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels", "The PDF specified was not valid.", "Unable to download the file. Please verify the URL and try again."} {
		bodies := askRefusing(t, words, `"source":{`, model.Block{Kind: model.File, Name: "a.png", MIMEType: "image/png", Data: []byte("x")},
			model.Block{Kind: model.ToolResult, ID: "c", Files: []model.Block{{Kind: model.File, MIMEType: "image/png", Data: []byte("x")}}})
		if len(bodies) != 4 || strings.Count(bodies[3], "left out") != 2 { // other conversations may send files
			t.Errorf("%s: %d requests: %s", words, len(bodies), bodies)
		}
	}
}
