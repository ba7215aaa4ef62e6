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
	t.Setenv("ANTHROPIC_API_KEY", "of-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "of-the-environment")
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
		System: []string{"a", "b"}, MaxTokens: 7, Messages: []model.Message{model.Said(model.User, "x"), model.Said(model.Assistant, "y"), model.Said(model.User, "z")},
		Tools: []model.Tool{{Name: "t1"}, {Name: "t.2", Description: "d", Schema: json.RawMessage(`{"type":"object","properties":{"a":{}},"additionalProperties":false}`)}},
	}, model.Pieces{})
	if err != nil || answer.Usage != (model.Usage{Input: 3, Output: 9, CacheRead: 40, CacheWrite: 5}) {
		t.Errorf("%+v, %v", answer, err)
	}
	if header.Get("X-Api-Key") != "k" || header.Get("Authorization") != "" {
		t.Errorf("it was asked with %v, in a process that has %s", header, os.Getenv("ANTHROPIC_API_KEY"))
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
		_, err := p.Call(t.Context(), name, model.Request{MaxTokens: 1, Messages: []model.Message{model.Said(model.User, "x")}}, model.Pieces{})
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
