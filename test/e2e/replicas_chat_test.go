package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// A chat goes on in one of two servers on one database. The other one refuses a second run, and takes
// the person's answer to what an app asks; once the first is killed in the middle of a run, it goes on
// with the conversation.
func TestAChatOfOneServerIsKnownToTheOther(t *testing.T) {
	t.Parallel()
	p, database := testenv.StartModelProvider(t), databases.New(t)
	var servers []*server
	for range 2 {
		servers = append(servers, serve(t, models(p, "openai"), func(s *server) { s.database = database }))
	}
	a, b := servers[0], servers[1]
	a.install(t, map[string]any{"path": goBundle(t, "teller", teller)})
	a.install(t, map[string]any{"path": goBundle(t, "go", plain)})
	calling(t, p, "teller__ask", `{"text":"Who?"}`)
	id := ""
	_, answers, output := a.askedIn(t, func(q map[string]any) {
		a := b.do(t, "GET", "/v1/conversations", nil)
		id, _ = list(t, answer{body: toText(t, a.object(t)["conversations"]), status: a.status})[0]["id"].(string)
		if a := b.do(t, "POST", "/v1/chat/stream", `{"message":"me too","conversationId":"`+id+`"}`); a.status != 409 || a.object(t)["error"] != "run_in_progress" {
			t.Errorf("a second run through the other server: %d %s", a.status, a.body)
		}
		b.reply(t, q, `{"action":"accept","content":{"name":7}}`, 400, "invalid_input")
		b.reply(t, q, `{"action":"accept","content":{"name":"Ada"}}`, 200, "accept")
		b.reply(t, q, `{"action":"decline"}`, 409, "already_answered")
	})
	if answers[0]["reason"] != "person" || output != "Ada" {
		t.Errorf("answered %v; the tool said %s", answers[0], output)
	}
	if a := b.do(t, "POST", "/v1/chat", `{"message":"and now","conversationId":"`+id+`"}`); a.status != 200 {
		t.Errorf("the next run, through the other server: %d %s", a.status, a.body)
	}

	gate := a.shared("go", "gate")
	calling(t, p, "go__last", `{"text":`+quoted(gate)+`}`)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var broken sync.WaitGroup
	broken.Go(func() {
		a.chat(ctx, t, `{"message":"go","conversationId":"`+id+`"}`, func(chatEvent) bool { return false })
	})
	if !eventually(patience, exists(gate+".begun")) {
		t.Fatal("the call did not begin")
	}
	a.kill()
	killed := time.Now()
	p.Forget(t) // the model is shown both messages as one, and would call the tool again
	p.Say(t, `{"match":{},"response":{"content":"Done."}}`)
	free := eventually(2*patience, func() bool {
		return b.do(t, "POST", "/v1/chat", `{"message":"carry the rest","conversationId":"`+id+`"}`).status == 200
	})
	if took := time.Since(killed); !free || took > 20*time.Second {
		t.Errorf("after the kill the conversation is free: %v, after %v", free, took)
	}
	broken.Wait()
	if history := b.do(t, "GET", "/v1/conversations/"+id+"/history", nil).body; !strings.Contains(history, "and now") || !strings.Contains(history, "carry the rest") {
		t.Errorf("the history is %s", history)
	}
}
