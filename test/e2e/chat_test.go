package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// models configures a provider of models on both of its protocols, one of them as the default.
func models(p *testenv.ModelProvider, wire string) with {
	return config(modelsYAML(p, wire))
}

func modelsYAML(p *testenv.ModelProvider, wire string) string {
	return "models:\n  default: " + wire + ":test-model\n  providers:\n" +
		"    anthropic: {baseUrl: '" + p.URL + "', apiKey: k}\n    openai: {baseUrl: '" + p.URL + "/v1', apiKey: k}\n"
}

// quoted is a text as it stands inside of JSON.
func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// chatEvent is one event of a chat stream.
type chatEvent struct {
	name string
	data map[string]any
}

// chat says something and reads the stream until each says stop, or to its end.
func (s *server) chat(ctx context.Context, t *testing.T, body string, each func(chatEvent) (stop bool)) (names []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/chat/stream", strings.NewReader(body))
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
	var e chatEvent
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			e = chatEvent{name: value}
		}
		if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				t.Fatalf("%s is not JSON: %s", e.name, value)
			}
			names = append(names, e.name)
			if each(e) {
				return names
			}
		}
	}
	return names
}

// A model on either wire writes a file through a published server, and after a kill and a new
// start everything that was said is still there, and can be gone on from.
func TestAChatThatWritesAFileOutlivesTheServer(t *testing.T) {
	for _, wire := range []string{"anthropic", "openai"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			p, dir := testenv.StartModelProvider(t), t.TempDir()
			s := serve(t, config(modelsYAML(p, wire)+"apps:\n  filesystem: {sandbox: {write: ['"+dir+"']}}\n"))
			s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("filesystem", filesystem, dir))})
			file := filepath.Join(dir, "note.txt")
			p.Say(t,
				`{"match":{"systemMessage":"Write a title"},"response":{"content":"A note"}}`,
				`{"match":{"userMessage":"a note","hasToolResult":false},"response":{"content":"I write it.","toolCalls":[{"id":"w1","name":"filesystem__write_file","arguments":{"path":`+quoted(file)+`,"content":"kept"}}],"usage":{"prompt_tokens":100,"completion_tokens":20}}}`,
				`{"match":{"userMessage":"a note","hasToolResult":true},"response":{"content":"It is there.","usage":{"prompt_tokens":200,"completion_tokens":30}}}`,
				`{"match":{"userMessage":"and then"},"response":{"content":"Then this.","usage":{"prompt_tokens":300,"completion_tokens":40}}}`)
			events := s.listen(t)
			var done map[string]any
			names := s.chat(t.Context(), t, `{"message":"write a note"}`, func(e chatEvent) bool { done = e.data; return false })
			if want := []string{"chat.start", "text.delta", "tool.start", "tool.done", "text.delta", "done"}; !slices.Equal(slices.Compact(names), want) {
				t.Fatalf("events %v, want %v\n%v", names, want, done)
			}
			if content, err := os.ReadFile(file); err != nil || string(content) != "kept" {
				t.Errorf("the file holds %q, %v", content, err)
			}
			if e := events.next(t); !strings.HasPrefix(e, `data.changed {"server":"filesystem"`) {
				t.Errorf("event %s", e)
			}
			id, _ := done["conversationId"].(string)
			s.remembers(t, id, 300, 50)
			s.kill()
			s.start()
			s.reaches(t, "filesystem", "running")
			s.remembers(t, id, 300, 50)
			a := s.do(t, "POST", "/v1/chat", `{"message":"and then","conversationId":"`+id+`"}`)
			if a.status != 200 || a.object(t)["response"] != "Then this." {
				t.Errorf("it goes on with %d %s", a.status, a.body)
			}
			notified := slices.ContainsFunc(p.Journal(t), func(asked testenv.Asked) bool {
				raw, _ := json.Marshal(asked.Body["messages"])
				return strings.Contains(string(raw), "and then") && strings.Contains(string(raw), "It is there.") && strings.Contains(string(raw), `"w1"`)
			})
			if !notified {
				t.Error("the model was not notified what had been said before the kill")
			}
		})
	}
}

// remembers checks the list, the history and the usage of one conversation.
func (s *server) remembers(t *testing.T, id string, input, output float64) {
	t.Helper()
	list := s.do(t, "GET", "/v1/conversations?search=note", nil)
	if !strings.Contains(list.body, `"id":"`+id+`"`) || !strings.Contains(list.body, `"totalCount":1`) {
		t.Errorf("the list is %s", list.body)
	}
	history := s.do(t, "GET", "/v1/conversations/"+id+"/history", nil).body
	for _, part := range []string{`"content":"write a note"`, `"content":"I write it.\n\nIt is there."`, `"name":"filesystem__write_file"`} {
		if !strings.Contains(history, part) {
			t.Errorf("the history lacks %s: %s", part, history)
		}
	}
	if got := strings.Count(history, `"role":`); got != 2 { // the question, and one message for the whole run
		t.Errorf("the history has %d messages, want 2: %s", got, history)
	}
	used := s.do(t, "GET", "/v1/usage?groupBy=conversation", nil).object(t)
	totals, _ := used["totals"].(map[string]any)
	if got, _ := totals["inputTokens"].(float64); got < input {
		t.Errorf("usage %v", totals)
	}
	if got, _ := totals["outputTokens"].(float64); got < output || totals["costUsd"] != nil {
		t.Errorf("usage %v", totals)
	}
}
