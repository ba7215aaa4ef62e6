package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// calling makes the model call a tool when it is notified to go, and say a word afterwards.
func calling(t *testing.T, p *testenv.ModelProvider, tool, arguments string) {
	t.Helper()
	p.Forget(t)
	p.Say(t,
		`{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[{"id":"c1","name":"`+tool+`","arguments":`+arguments+`}]}}`,
		`{"match":{},"response":{"content":"Done."}}`)
}

// askedIn says go in a chat, gives each question to reply, and returns them with what the tool said.
func (s *server) askedIn(t *testing.T, reply func(question map[string]any)) (questions, answers []map[string]any, output string) {
	t.Helper()
	s.chat(t.Context(), t, `{"message":"go"}`, func(e chatEvent) bool {
		switch e.name {
		case "elicitation.request":
			questions = append(questions, e.data)
			reply(e.data)
		case "elicitation.answer":
			answers = append(answers, e.data)
		case "tool.done":
			output, _ = e.data["output"].(string)
		}
		return false
	})
	if len(questions) == 0 || len(answers) != len(questions) {
		t.Fatalf("questions %v, answers %v; the tool said %s", questions, answers, output)
	}
	return questions, answers, output
}

// reply answers a question, and checks status and code of the answer.
func (s *server) reply(t *testing.T, question map[string]any, body string, want int, code string) {
	t.Helper()
	id, _ := question["id"].(string)
	a := s.do(t, "POST", "/v1/chat/elicitations/"+id, body)
	if a.status != want || !strings.Contains(a.body, code) {
		t.Errorf("%s: %d %s, want %d %s", body, a.status, a.body, want, code)
	}
}

// What a published server asks is shown in the stream of the person's own run, and their answer
// reaches it; where nobody can see the question, or nobody answers, it is declined.
func TestAPersonAnswersWhatAPublishedServerAsksInAChat(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := serve(t, models(p, "anthropic"))
	s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("everything", everything, "stdio"))})
	events := s.listen(t)

	t.Run("a form", func(t *testing.T) {
		calling(t, p, "everything__trigger-elicitation-request", `{}`)
		questions, answers, output := s.askedIn(t, func(q map[string]any) {
			s.reply(t, q, `{"action":"accept","content":{"integer":1000}}`, 400, "invalid_input")
			s.reply(t, q, `{"action":"perhaps"}`, 400, "bad_request")
			s.reply(t, q, `{"action":7}`, 400, "action must be a string")
			s.reply(t, map[string]any{"id": "elic_00"}, `{"action":"cancel"}`, 404, "not_found")
			s.reply(t, q, `{"action":"accept","content":{"name":"Ada Lovelace","integer":7,"email":"ada@example.com"}}`, 200, `"action":"accept"`)
			s.reply(t, q, `{"action":"decline"}`, 409, "already_answered")
		})
		q := questions[0]
		if q["mode"] != "form" || q["server"] != "everything" || q["tool"] != "trigger-elicitation-request" || q["toolCallId"] != "c1" || !strings.Contains(toText(t, q["requestedSchema"]), `"birthdate"`) {
			t.Errorf("asked %v", q)
		}
		if answers[0]["reason"] != "person" || !strings.Contains(output, "Ada Lovelace") || !strings.Contains(output, "ada@example.com") {
			t.Errorf("answered %v; the tool said %s", answers[0], output)
		}
		s.reply(t, q, `{"action":"decline"}`, 404, "not_found")
	})
	t.Run("an address", func(t *testing.T) {
		calling(t, p, "everything__trigger-url-elicitation", `{"url":"https://idp.example/login","elicitationId":"e1"}`)
		questions, _, output := s.askedIn(t, func(q map[string]any) { s.reply(t, q, `{"action":"accept"}`, 200, "accept") })
		if q := questions[0]; q["mode"] != "url" || q["url"] != "https://idp.example/login" || q["elicitationId"] != "e1" || !strings.Contains(output, "User completed") {
			t.Errorf("asked %v; the tool said %s", q, output)
		}
	})
	t.Run("an address that must be visited first", func(t *testing.T) {
		calling(t, p, "everything__trigger-url-elicitation", `{"url":"https://idp.example/two","errorPath":true}`)
		questions, _, output := s.askedIn(t, func(q map[string]any) { s.reply(t, q, `{"action":"accept"}`, 200, "accept") })
		if len(questions) != 2 || questions[0]["url"] != "https://modelcontextprotocol.io" || !strings.Contains(output, "User completed") {
			t.Errorf("asked %v; the tool said %s", questions, output)
		}
	})
	t.Run("in one piece", func(t *testing.T) {
		calling(t, p, "everything__trigger-elicitation-request", `{}`)
		start := time.Now()
		a := s.do(t, "POST", "/v1/chat", `{"message":"go"}`)
		if a.status != 200 || !strings.Contains(a.body, "declined") || time.Since(start) > 10*time.Second {
			t.Errorf("after %v: %d %s", time.Since(start), a.status, a.body)
		}
	})
	t.Run("sampling", func(t *testing.T) {
		calling(t, p, "everything__trigger-sampling-request", `{"prompt":"hi"}`)
		a := s.do(t, "POST", "/v1/chat", `{"message":"go"}`)
		if a.status != 200 || !strings.Contains(a.body, "sampling/createMessage cannot be answered") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	for drained := false; !drained; { // what is asked is nobody else's business
		select {
		case e := <-events.events:
			if strings.HasPrefix(e, "elicitation") {
				t.Errorf("the workspace was notified %s", e)
			}
		default:
			drained = true
		}
	}
}

func TestAQuestionInAChatIsDeclinedAfterATime(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := serve(t, config(modelsYAML(p, "openai")+"chat: {elicitationTimeoutSeconds: 1}\n"))
	s.install(t, map[string]any{"path": nodeBundle(t, nodeManifest("everything", everything, "stdio"))})
	calling(t, p, "everything__trigger-elicitation-request", `{}`)
	start := time.Now()
	_, answers, output := s.askedIn(t, func(map[string]any) {})
	if answers[0]["action"] != "decline" || answers[0]["reason"] != "timeout" || !strings.Contains(output, "declined") || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v; the tool said %s", time.Since(start), answers[0], output)
	}
}

func TestABundleOfTheNewestRevisionAsksInAChat(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := serve(t, models(p, "openai"))
	script, err := os.ReadFile("asking.mjs")
	if err != nil {
		t.Fatal(err)
	}
	dir := bundle(t, map[string]any{"name": "@e2e/asking", "server": map[string]any{
		"type": "node", "entry_point": "asking.mjs", "mcp_config": map[string]any{"command": "node", "args": []string{"${__dirname}/asking.mjs"}},
	}})
	write(t, filepath.Join(dir, "asking.mjs"), string(script))
	s.install(t, map[string]any{"path": dir})
	calling(t, p, "asking__word", `{}`)
	questions, _, output := s.askedIn(t, func(q map[string]any) {
		s.reply(t, q, `{"action":"accept","content":{}}`, 400, "invalid_input")
		s.reply(t, q, `{"action":"accept","content":{"word":"rope"}}`, 200, "accept")
	})
	if len(questions) != 1 || questions[0]["message"] != "Which word?" || output != `the reply is {"action":"accept","content":{"word":"rope"}}` {
		t.Errorf("asked %v; the tool said %s", questions, output)
	}
	a := s.do(t, "POST", "/v1/chat", `{"message":"go"}`)
	var answer struct{ ToolCalls []struct{ Output string } }
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil || len(answer.ToolCalls) != 1 || answer.ToolCalls[0].Output != `the reply is {"action":"decline"}` {
		t.Errorf("in one piece: %d %s", a.status, a.body)
	}
}
