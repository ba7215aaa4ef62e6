package chat

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// If a server is killed in the middle of an answer, it keeps all but the last moments of the text. In a turn with tool
// calls, it keeps the results of the tools. The next run continues from there.
func TestAKilledServerKeepsTheAnswerThatItWasWriting(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "go", harness.Plain)})
	gate := s.SharedFile("go", "gate")
	p.Say(t,
		`{"match":{"userMessage":"use tools","hasToolResult":false},"response":{"content":"I look.","toolCalls":[{"name":"go__echo","arguments":{"text":"done before"}},{"name":"go__last","arguments":{"text":`+harness.Quote(gate)+`}}]}}`,
		`{"match":{"userMessage":"tell me"},"response":{"content":"`+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	history := func(id string) string { return s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body }
	killedWhen := func(message, saved string) (id string) {
		s.Chat(t.Context(), t, `{"message":"`+message+`"}`, func(e harness.ChatEvent) bool {
			if e.Name == "chat.start" {
				id, _ = e.Data["conversationId"].(string)
				if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(history(id), saved) }) {
					t.Fatalf("while the run continues, the history is %s", history(id))
				}
				if strings.Contains(history(id), `"stopReason"`) {
					t.Errorf("the run has not ended, but the history shows its end: %s", history(id))
				}
				s.Kill()
			}
			return false
		})
		return id
	}
	for _, c := range []struct {
		message, saved string
		continues      []string
	}{
		{"tell me", "word word word word", []string{"word word word word"}},
		{"use tools", "done before", []string{"I look.", "go__echo", "done before", "The run ended before the tool answered."}},
	} {
		s.WaitForStatus(t, "go", "running")
		id := killedWhen(c.message, c.saved)
		s.Start()
		// If servers share a database, the other servers respect the killed server's claim for some time.
		ended := testkit.Within(harness.Timeout, func() bool { return strings.Contains(history(id), `"stopReason"`) })
		got := history(id)
		if !ended || !strings.Contains(got, c.saved) || !strings.Contains(got, `"stopReason":"incomplete"`) || !strings.Contains(got, "The server stopped in the middle of the answer") {
			t.Errorf("%s: after the kill, the history is %s", c.message, got)
		}
		if strings.Contains(got, `"inputTokens":0`) {
			t.Errorf("%s: unknown usage is shown as 0: %s", c.message, got)
		}
		if a := s.Do(t, "POST", "/v1/chat", `{"message":"and then","conversationId":"`+id+`"}`); a.Status != 200 {
			t.Fatalf("%s: the next message: %d %s", c.message, a.Status, a.Body)
		}
		if list := s.Do(t, "GET", "/v1/conversations", nil).Body; !strings.Contains(list, `"messageCount":4`) {
			t.Errorf("%s: the list is %s", c.message, list)
		}
		asked := requestsWith(t, p, "and then")
		sent := harness.ToText(t, asked[len(asked)-1].Body["messages"])
		for _, part := range c.continues {
			if !strings.Contains(sent, part) {
				t.Errorf("%s: the model does not get %q: %s", c.message, part, sent)
			}
		}
		if got := history(id); strings.Count(got, `"stopReason":"incomplete"`) != 1 || strings.Count(got, `"role":"assistant"`) != 2 {
			t.Errorf("%s: at the end, the history is %s", c.message, got)
		}
		s.Do(t, "DELETE", "/v1/conversations/"+id, nil)
	}
}
