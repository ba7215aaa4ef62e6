package cluster

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// A chat runs on one of two servers with the same database. The other server refuses a second run and accepts the
// answer to an app's question. After the first server is killed during a run, the other server continues the
// conversation.
func TestAConversationIsSharedByTwoServers(t *testing.T) {
	t.Parallel()
	p, database := testenv.StartModelProvider(t), harness.Databases.New(t)
	var servers []*harness.Server
	for range 2 {
		servers = append(servers, harness.Serve(t, harness.Models(p, "openai"), func(s *harness.Server) { s.Database = database }))
	}
	a, b := servers[0], servers[1]
	a.Install(t, map[string]any{"path": harness.GoBundle(t, "asker", harness.Asking)})
	a.Install(t, map[string]any{"path": harness.GoBundle(t, "go", harness.Plain)})
	harness.ScriptToolCall(t, p, "asker__ask", `{"text":"Who?"}`)
	id := ""
	_, answers, output := a.AnswerQuestions(t, func(q map[string]any) {
		a := b.Do(t, "GET", "/v1/conversations", nil)
		id, _ = harness.List(t, harness.Response{Body: harness.ToText(t, a.Object(t)["conversations"]), Status: a.Status})[0]["id"].(string)
		if a := b.Do(t, "POST", "/v1/chat/stream", `{"message":"me too","conversationId":"`+id+`"}`); a.Status != 409 || a.Object(t)["error"] != "run_in_progress" {
			t.Errorf("a second run through the other server: %d %s", a.Status, a.Body)
		}
		b.Reply(t, q, `{"action":"accept","content":{"name":7}}`, 400, "invalid_input")
		b.Reply(t, q, `{"action":"accept","content":{"name":"Ada"}}`, 200, "accept")
		b.Reply(t, q, `{"action":"decline"}`, 409, "already_answered")
	})
	if answers[0]["reason"] != "person" || output != "Ada" {
		t.Errorf("answered %v; the tool returned %s", answers[0], output)
	}
	if a := b.Do(t, "POST", "/v1/chat", `{"message":"and now","conversationId":"`+id+`"}`); a.Status != 200 {
		t.Errorf("the next run, through the other server: %d %s", a.Status, a.Body)
	}

	gate := a.SharedFile("go", "gate")
	harness.ScriptToolCall(t, p, "go__last", `{"text":`+harness.Quote(gate)+`}`)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var broken sync.WaitGroup
	broken.Go(func() {
		a.Chat(ctx, t, `{"message":"go","conversationId":"`+id+`"}`, func(harness.ChatEvent) bool { return false })
	})
	if !testkit.Within(harness.Timeout, harness.Exists(gate+".begun")) {
		t.Fatal("the call did not begin")
	}
	a.Kill()
	killed := time.Now()
	p.Forget(t) // the model gets both messages as one, so it would call the tool again
	p.Say(t, `{"match":{},"response":{"content":"Done."}}`)
	free := testkit.Within(2*harness.Timeout, func() bool {
		return b.Do(t, "POST", "/v1/chat", `{"message":"carry the rest","conversationId":"`+id+`"}`).Status == 200
	})
	if took := time.Since(killed); !free || took > time.Minute {
		t.Errorf("after the kill, the conversation is free: %v, after %v", free, took)
	}
	broken.Wait()
	if history := b.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body; !strings.Contains(history, "and now") || !strings.Contains(history, "carry the rest") {
		t.Errorf("the history is %s", history)
	}
}

func TestARunIsJoinedAndStoppedThroughAnotherServer(t *testing.T) {
	t.Parallel()
	p, database := testenv.StartModelProvider(t), harness.Databases.New(t)
	var servers []*harness.Server
	for range 2 {
		servers = append(servers, harness.Serve(t, harness.Models(p, "anthropic"), func(s *harness.Server) { s.Database = database }))
	}
	a, b := servers[0], servers[1]
	p.Say(t,
		`{"match":{"userMessage":"short"},"response":{"content":"`+strings.Repeat("word ", 60)+`the end"},"chunkSize":20,"latency":500}`,
		`{"match":{"userMessage":"long"},"response":{"content":"`+strings.Repeat("word ", 5000)+`"},"chunkSize":5,"latency":20}`,
		`{"match":{},"response":{"content":"Ok."}}`)

	id := a.Leave(t, "short")
	status, ids, names, said := b.Join(t, id, "")
	if status != 200 || len(names) < 6 || names[0] != "chat.start" || names[len(names)-1] != "done" || !strings.Contains(said, "the end") || len(ids) != len(names) {
		t.Fatalf("joined through the other server: %d %q %q %s", status, ids, names, said)
	}
	if status, _, _, said := b.Join(t, id, ""); status != 404 {
		t.Errorf("after the end: %d %s", status, said)
	}
	var begun string
	a.Chat(t.Context(), t, `{"message":"short","detach":true}`, func(e harness.ChatEvent) bool {
		id, _ = e.Data["conversationId"].(string)
		begun, _ = e.Data["runId"].(string)
		return true
	})
	if _, rest, names, _ := b.Join(t, id, begun+".3"); len(rest) != len(ids)-3 || names[0] != "text.delta" || rest[0] != begun+".4" {
		t.Errorf("after the third event, got %q, want the last %d", rest, len(ids)-3)
	}

	id = a.Leave(t, "long")
	history := func() string { return a.Do(t, "GET", "/v1/conversations/"+id+"/history", nil).Body }
	if got := b.Do(t, "DELETE", "/v1/conversations/"+id+"/run", nil); got.Status != 200 || !strings.Contains(history(), `"stopReason":"cancelled"`) {
		t.Errorf("stopping the run through the other server: %d %s; the history is %s", got.Status, got.Body, history())
	}
	if got := b.Do(t, "DELETE", "/v1/conversations/"+id+"/run", nil); got.Status != 404 {
		t.Errorf("stopping the run again: %d %s", got.Status, got.Body)
	}
}
