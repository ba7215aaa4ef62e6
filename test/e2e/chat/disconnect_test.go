package chat

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// requestsWith returns the requests to the provider whose messages contain the word.
func requestsWith(t *testing.T, p *testenv.ModelProvider, word string) (found []testenv.ModelRequest) {
	t.Helper()
	for _, asked := range p.Journal(t) {
		raw, _ := json.Marshal(asked.Body["messages"])
		if strings.Contains(string(raw), word) && !strings.Contains(string(raw), "Write a title") {
			found = append(found, asked)
		}
	}
	return found
}

// Two conversations have runs at the same time. A second run in the same conversation is refused. When the client
// disconnects, its run ends: the tool call is cancelled, and the model gets no more requests.
func TestADisconnectEndsTheRunAndItsToolCall(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"))
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "go", harness.Plain)})
	gate := s.SharedFile("go", "gate")
	began, cancelled := harness.Exists(gate+".begun"), harness.Exists(gate+".cancelled")
	p.Say(t,
		`{"match":{"userMessage":"first","hasToolResult":false},"response":{"content":"I begin.","toolCalls":[{"name":"go__last","arguments":{"text":`+harness.Quote(gate)+`}}]}}`,
		`{"match":{"userMessage":"second","hasToolResult":false},"response":{"toolCalls":[{"name":"go__echo","arguments":{"text":"across"}}]}}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var first sync.WaitGroup
	ids := make(chan string, 1)
	first.Go(func() {
		s.Chat(ctx, t, `{"message":"first"}`, func(e harness.ChatEvent) bool {
			if e.Name == "chat.start" {
				ids <- e.Data["conversationId"].(string)
			}
			return false
		})
	})
	id := <-ids
	if !testkit.Within(harness.Timeout, began) {
		t.Fatal("the tool call of the first run did not begin")
	}
	var done map[string]any
	s.Chat(t.Context(), t, `{"message":"second"}`, func(e harness.ChatEvent) bool { done = e.Data; return false })
	if done["response"] != "Ok." || !strings.Contains(harness.ToText(t, done["toolCalls"]), "across") || done["conversationId"] == id {
		t.Errorf("the second run ended with %v", done)
	}
	for _, path := range []string{"/v1/chat", "/v1/chat/stream"} {
		if a := s.Do(t, "POST", path, `{"message":"me too","conversationId":"`+id+`"}`); a.Status != 409 || a.Object(t)["error"] != "run_in_progress" {
			t.Errorf("a second run in one conversation: %d %s", a.Status, a.Body)
		}
	}
	if cancelled() {
		t.Fatal("the call was cancelled before the client disconnected")
	}
	start := time.Now()
	leave()
	if !testkit.Within(harness.Timeout, cancelled) || time.Since(start) > time.Minute {
		t.Errorf("the tool call was cancelled: %v, after %v", cancelled(), time.Since(start))
	}
	free := testkit.Within(harness.Timeout, func() bool {
		return s.Do(t, "POST", "/v1/chat", `{"message":"next","conversationId":"`+id+`"}`).Status == 200
	})
	if took := time.Since(start); !free || took > 80*time.Second { // the time includes the next run
		t.Errorf("the conversation is free: %v, after %v", free, took)
	}
	first.Wait()
	if asked := requestsWith(t, p, "first"); len(asked) != 2 || !strings.Contains(harness.ToText(t, asked[1].Body["messages"]), "next") {
		t.Errorf("the model got %d requests in the first conversation, want one for this run and one for the next", len(asked))
	}
	if history := s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body; !strings.Contains(history, `"stopReason":"cancelled"`) || !strings.Contains(history, "I begin.") {
		t.Errorf("the history is %s", history)
	}
}

// When the client disconnects while the model is streaming, the request to the provider ends. The text that has arrived
// is stored.
func TestADisconnectCancelsTheRequestToTheModel(t *testing.T) {
	for _, wire := range []string{"anthropic", "openai"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			p := testenv.StartModelProvider(t)
			s := harness.Serve(t, harness.Models(p, wire))
			p.Say(t, `{"match":{},"response":{"content":"`+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var id string
			s.Chat(ctx, t, `{"message":"tell me"}`, func(e harness.ChatEvent) bool {
				if e.Name == "chat.start" {
					id, _ = e.Data["conversationId"].(string)
				}
				return e.Name == "text.delta"
			})
			left := time.Now()
			leave()
			var asked []testenv.ModelRequest
			testkit.Within(harness.Timeout, func() bool {
				asked = requestsWith(t, p, "tell me")
				return len(asked) > 0 && asked[0].Response.Left > 0
			})
			if len(asked) != 1 || asked[0].Response.Left-left.UnixMilli() > 30_000 || // the whole answer would take 100 s
				asked[0].Response.Left < left.UnixMilli()-50 {
				t.Errorf("the client disconnected at %d; the provider's journal is %+v", left.UnixMilli(), asked)
			}
			kept := testkit.Within(harness.Timeout, func() bool {
				history := s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body
				return strings.Contains(history, `"content":"word`) && strings.Contains(history, `"stopReason":"cancelled"`)
			})
			if !kept {
				t.Errorf("the history is %s", s.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body)
			}
		})
	}
}
