package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// With either model protocol, a model writes a file through a published server. After SIGKILL and a restart, the
// conversation is complete and can be continued.
func TestAConversationSurvivesAKilledServer(t *testing.T) {
	for _, wire := range []string{"anthropic", "openai"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			p, dir := testenv.StartModelProvider(t), t.TempDir()
			s := harness.Serve(t, harness.Config(harness.ModelsYAML(p, wire)+"apps:\n  filesystem: {sandbox: {write: ['"+dir+"']}}\n"))
			s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("filesystem", harness.Filesystem, dir))})
			file := filepath.Join(dir, "note.txt")
			p.Say(t,
				`{"match":{"systemMessage":"Write a title"},"response":{"content":"A note"}}`,
				`{"match":{"userMessage":"a note","hasToolResult":false},"response":{"content":"I write it.","toolCalls":[{"id":"w1","name":"filesystem__write_file","arguments":{"path":`+harness.Quote(file)+`,"content":"kept"}}],"usage":{"prompt_tokens":100,"completion_tokens":20}}}`,
				`{"match":{"userMessage":"a note","hasToolResult":true},"response":{"content":"It is there.","usage":{"prompt_tokens":200,"completion_tokens":30}}}`,
				`{"match":{"userMessage":"and then"},"response":{"content":"Then this.","usage":{"prompt_tokens":300,"completion_tokens":40}}}`)
			events := s.Listen(t)
			var done map[string]any
			names := s.Chat(t.Context(), t, `{"message":"write a note"}`, func(e harness.ChatEvent) bool { done = e.Data; return false })
			if want := []string{"chat.start", "text.delta", "tool.start", "tool.done", "text.delta", "done"}; !slices.Equal(slices.Compact(names), want) {
				t.Fatalf("events %v, want %v\n%v", names, want, done)
			}
			if content, err := os.ReadFile(file); err != nil || string(content) != "kept" {
				t.Errorf("the file contains %q, %v", content, err)
			}
			if e := events.Next(t); !strings.HasPrefix(e, `data.changed {"server":"filesystem"`) {
				t.Errorf("event %s", e)
			}
			id, _ := done["conversationId"].(string)
			checkStored(t, s, id, 300, 50)
			s.Kill()
			s.Start()
			s.WaitForStatus(t, "filesystem", "running")
			checkStored(t, s, id, 300, 50)
			a := s.Do(t, "POST", "/v1/chat", `{"message":"and then","conversationId":"`+id+`"}`)
			if a.Status != 200 || a.Object(t)["response"] != "Then this." {
				t.Errorf("the next message returned %d %s", a.Status, a.Body)
			}
			sent := slices.ContainsFunc(p.Journal(t), func(asked testenv.ModelRequest) bool {
				raw, _ := json.Marshal(asked.Body["messages"])
				return strings.Contains(string(raw), "and then") && strings.Contains(string(raw), "It is there.") && strings.Contains(string(raw), `"w1"`)
			})
			if !sent {
				t.Error("the model did not get the messages from before the kill")
			}
		})
	}
}

// checkStored checks the list, the history and the usage of a conversation.
func checkStored(t *testing.T, s *harness.Server, id string, input, output float64) {
	t.Helper()
	list := s.Do(t, "GET", "/v1/conversations?search=note", nil)
	if !strings.Contains(list.Body, `"id":"`+id+`"`) || !strings.Contains(list.Body, `"totalCount":1`) {
		t.Errorf("the list is %s", list.Body)
	}
	history := s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body
	for _, part := range []string{`"content":"write a note"`, `"content":"I write it.\n\nIt is there."`, `"name":"filesystem__write_file"`} {
		if !strings.Contains(history, part) {
			t.Errorf("%s is missing from the history: %s", part, history)
		}
	}
	if got := strings.Count(history, `"role":`); got != 2 { // the question, and one answer for the whole run
		t.Errorf("the history has %d messages, want 2: %s", got, history)
	}
	used := s.Do(t, "GET", "/v1/usage?groupBy=conversation", nil).Object(t)
	totals, _ := used["totals"].(map[string]any)
	if got, _ := totals["inputTokens"].(float64); got < input {
		t.Errorf("usage %v", totals)
	}
	if got, _ := totals["outputTokens"].(float64); got < output || totals["costUsd"] != nil {
		t.Errorf("usage %v", totals)
	}
}
