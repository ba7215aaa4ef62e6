package anthropic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/model/anthropic"
)

// serveEvents answers every request with these events, and records paths and bodies.
func serveEvents(t *testing.T, events []string, paths, bodies *[]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		*paths, *bodies = append(*paths, r.URL.Path), append(*bodies, string(raw))
		for _, e := range events {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestThinkingIsReturnedUnchangedInAnyInterleaving(t *testing.T) {
	events := []string{
		`{"type":"message_start","message":{}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x < \ud83d"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\":"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Zm9v&"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig/1=="}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1.50}"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"not text"}}`,
		`{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"nor this"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"9007199254740993}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`,
	}
	var paths, bodies []string
	p := anthropic.New(model.Settings{BaseURL: serveEvents(t, events, &paths, &bodies) + "/v1"})
	t.Cleanup(p.Close)
	thought, asked := "", []model.Message{model.TextMessage(model.User, "x")}
	answer, err := p.Call(t.Context(), "m", model.Request{Messages: asked}, model.Pieces{Thought: func(s string) { thought += s }})
	if err != nil || answer.Text() != "" || !strings.HasPrefix(thought, "x < ") {
		t.Fatalf("%+v, %q, %v", answer, thought, err)
	}
	model.Sign(answer.Blocks, "m@1")
	for origin, want := range map[string]string{
		"m@1": `"content":[{"type":"thinking","thinking":"x < \ud83d\ude00","signature":"sig/1=="},{"type":"redacted_thinking","data":"Zm9v&"},` +
			`{"type":"tool_use","id":"a","name":"t","input":{"n":9007199254740993}},{"type":"server_tool_use","id":"srv","name":"web_search","input":{"q":1.50}}]`,
		"m@2": `"content":[{"type":"tool_use","id":"` + model.SafeID("a") + `","name":"t","input":{"n":9007199254740993}}]`,
	} {
		messages := model.ForModel(append(asked, model.Message{Role: model.Assistant, Blocks: answer.Blocks}), origin)
		if _, err := p.Call(t.Context(), "m", model.Request{Messages: messages}, model.Pieces{}); err != nil {
			t.Fatal(err)
		}
		if last := bodies[len(bodies)-1]; !strings.Contains(last, want) {
			t.Errorf("%s gets\n     %s\nwant %s", origin, last, want)
		}
	}
	if paths[0] != "/v1/messages" {
		t.Errorf("asked at %s", paths[0])
	}
}

func TestEachStopReasonIsReported(t *testing.T) {
	for reason, want := range map[string]model.End{
		"end_turn": model.EndTurn, "stop_sequence": model.EndTurn, "tool_use": model.EndNoCalls, "max_tokens": model.EndLength, "pause_turn": model.EndPause,
		"refusal": model.EndRefusal, "model_context_window_exceeded": model.EndWindow, "tired": model.EndUnknown,
	} {
		var ignored []string
		p := anthropic.New(model.Settings{BaseURL: serveEvents(t, []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"}}`, `{"type":"message_stop"}`}, &ignored, &ignored)})
		t.Cleanup(p.Close)
		answer, err := p.Call(t.Context(), "m", model.Request{}, model.Pieces{})
		if err != nil || answer.End != want || answer.Word != map[bool]string{true: reason}[want == model.EndUnknown] {
			t.Errorf("%s: %+v, %v", reason, answer, err)
		}
	}
}
