package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// Models configures the model provider with both protocols. The default model uses the protocol wire.
func Models(p *testenv.ModelProvider, wire string) Option {
	return Config(ModelsYAML(p, wire))
}

// ModelsYAML returns the section of the configuration that Models writes.
func ModelsYAML(p *testenv.ModelProvider, wire string) string {
	return "models:\n  default: " + wire + ":test-model\n  providers:\n" +
		"    anthropic: {baseUrl: '" + p.URL + "', apiKey: k}\n    openai: {baseUrl: '" + p.URL + "/v1', apiKey: k}\n"
}

// Quote returns text as a JSON string.
func Quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// ChatEvent is one event of a chat stream.
type ChatEvent struct {
	Name string
	Data map[string]any
}

// Chat sends a message and reads the stream. It stops when handle returns true or the stream ends.
func (s *Server) Chat(ctx context.Context, t *testing.T, body string, handle func(ChatEvent) (stop bool)) (names []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/chat/stream", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("POST /v1/chat/stream: %d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	var e ChatEvent
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			e = ChatEvent{Name: value}
		}
		if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(value), &e.Data); err != nil {
				t.Fatalf("%s is not JSON: %s", e.Name, value)
			}
			names = append(names, e.Name)
			if handle(e) {
				return names
			}
		}
	}
	return names
}

// ScriptToolCall makes the model call a tool after the message "go". The model then answers "Done."
func ScriptToolCall(t *testing.T, p *testenv.ModelProvider, tool, arguments string) {
	t.Helper()
	p.Forget(t)
	p.Say(t,
		`{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[{"id":"c1","name":"`+tool+`","arguments":`+arguments+`}]}}`,
		`{"match":{},"response":{"content":"Done."}}`)
}

// AnswerQuestions sends "go" in a chat and calls reply for each question. It returns the questions, the answers and the
// tool's output.
func (s *Server) AnswerQuestions(t *testing.T, reply func(question map[string]any)) (questions, answers []map[string]any, output string) {
	t.Helper()
	s.Chat(t.Context(), t, `{"message":"go"}`, func(e ChatEvent) bool {
		switch e.Name {
		case "elicitation.request":
			questions = append(questions, e.Data)
			reply(e.Data)
		case "elicitation.answer":
			answers = append(answers, e.Data)
		case "tool.done":
			output, _ = e.Data["output"].(string)
		}
		return false
	})
	if len(questions) == 0 || len(answers) != len(questions) {
		t.Fatalf("questions %v, answers %v; the tool returned %s", questions, answers, output)
	}
	return questions, answers, output
}

// Reply answers a question and checks the response's status and body.
func (s *Server) Reply(t *testing.T, question map[string]any, body string, want int, code string) {
	t.Helper()
	id, _ := question["id"].(string)
	a := s.Do(t, "POST", "/v1/chat/elicitations/"+id, body)
	if a.Status != want || !strings.Contains(a.Body, code) {
		t.Errorf("%s: %d %s, want %d %s", body, a.Status, a.Body, want, code)
	}
}

// Leave starts a detached run. It disconnects when the first text arrives and returns the ID of the conversation.
func (s *Server) Leave(t *testing.T, message string) (id string) {
	t.Helper()
	s.Chat(t.Context(), t, `{"message":"`+message+`","detach":true}`, func(e ChatEvent) bool {
		if e.Name == "chat.start" {
			id, _ = e.Data["conversationId"].(string)
		}
		return e.Name == "text.delta"
	})
	return id
}

// Join reads the events of a conversation's run until the run ends. last is the ID of the last event that the client
// has already received, or "".
func (s *Server) Join(t *testing.T, id, last string) (status int, ids, names []string, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/v1/conversations/"+id+"/run", nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, value)
		}
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names = append(names, value)
		}
		said += lines.Text() + "\n"
	}
	return resp.StatusCode, ids, names, said
}
