package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// An app's question appears in the run's event stream, and the answer reaches the app. If the client has no stream, or
// no answer arrives in time, the question is declined.
func TestAPersonAnswersAnAppsQuestionInAChat(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "anthropic"))
	s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	events := s.Listen(t)

	t.Run("a form", func(t *testing.T) {
		harness.ScriptToolCall(t, p, "everything__trigger-elicitation-request", `{}`)
		questions, answers, output := s.AnswerQuestions(t, func(q map[string]any) {
			s.Reply(t, q, `{"action":"accept","content":{"integer":1000}}`, 400, "invalid_input")
			s.Reply(t, q, `{"action":"perhaps"}`, 400, "bad_request")
			s.Reply(t, q, `{"action":7}`, 400, "action must be a string")
			s.Reply(t, map[string]any{"id": "elic_00"}, `{"action":"cancel"}`, 404, "not_found")
			s.Reply(t, q, `{"action":"accept","content":{"name":"Ada Lovelace","integer":7,"email":"ada@example.com"}}`, 200, `"action":"accept"`)
			id, _ := q["id"].(string) // the run may have ended in the meantime
			a := s.Do(t, "POST", "/v1/chat/elicitations/"+id, `{"action":"decline"}`)
			answered := a.Status == 409 && strings.Contains(a.Body, "already_answered")
			over := a.Status == 404 && strings.Contains(a.Body, "its run is over")
			if !answered && !over {
				t.Errorf("a second reply: %d %s", a.Status, a.Body)
			}
		})
		q := questions[0]
		if q["mode"] != "form" || q["server"] != "everything" || q["tool"] != "trigger-elicitation-request" || q["toolCallId"] != "c1" || !strings.Contains(harness.ToText(t, q["requestedSchema"]), `"birthdate"`) {
			t.Errorf("asked %v", q)
		}
		if answers[0]["reason"] != "person" || !strings.Contains(output, "Ada Lovelace") || !strings.Contains(output, "ada@example.com") {
			t.Errorf("answered %v; the tool returned %s", answers[0], output)
		}
		s.Reply(t, q, `{"action":"decline"}`, 404, "not_found")
	})
	t.Run("a URL", func(t *testing.T) {
		harness.ScriptToolCall(t, p, "everything__trigger-url-elicitation", `{"url":"https://idp.example/login","elicitationId":"e1"}`)
		questions, _, output := s.AnswerQuestions(t, func(q map[string]any) { s.Reply(t, q, `{"action":"accept"}`, 200, "accept") })
		if q := questions[0]; q["mode"] != "url" || q["url"] != "https://idp.example/login" || q["elicitationId"] != "e1" || !strings.Contains(output, "User completed") {
			t.Errorf("asked %v; the tool returned %s", q, output)
		}
	})
	t.Run("a URL that must be visited first", func(t *testing.T) {
		harness.ScriptToolCall(t, p, "everything__trigger-url-elicitation", `{"url":"https://idp.example/two","errorPath":true}`)
		questions, _, output := s.AnswerQuestions(t, func(q map[string]any) { s.Reply(t, q, `{"action":"accept"}`, 200, "accept") })
		if len(questions) != 2 || questions[0]["url"] != "https://modelcontextprotocol.io" || !strings.Contains(output, "User completed") {
			t.Errorf("asked %v; the tool returned %s", questions, output)
		}
	})
	t.Run("without a stream", func(t *testing.T) {
		harness.ScriptToolCall(t, p, "everything__trigger-elicitation-request", `{}`)
		start := time.Now()
		a := s.Do(t, "POST", "/v1/chat", `{"message":"go"}`)
		if a.Status != 200 || !strings.Contains(a.Body, "declined") || time.Since(start) > time.Minute {
			t.Errorf("after %v: %d %s", time.Since(start), a.Status, a.Body)
		}
	})
	t.Run("sampling", func(t *testing.T) {
		harness.ScriptToolCall(t, p, "everything__trigger-sampling-request", `{"prompt":"hi"}`)
		a := s.Do(t, "POST", "/v1/chat", `{"message":"go"}`)
		if a.Status != 200 || !strings.Contains(a.Body, "sampling/createMessage cannot be answered") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
	for drained := false; !drained; { // questions must not be workspace events
		select {
		case e := <-events.Events:
			if strings.HasPrefix(e, "elicitation") {
				t.Errorf("the workspace got the event %s", e)
			}
		default:
			drained = true
		}
	}
}

func TestAQuestionInAChatIsDeclinedAfterATimeout(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Config(harness.ModelsYAML(p, "openai")+"chat: {elicitationTimeoutSeconds: 1}\n"))
	s.Install(t, map[string]any{"path": harness.NodeBundle(t, harness.NodeManifest("everything", harness.Everything, "stdio"))})
	harness.ScriptToolCall(t, p, "everything__trigger-elicitation-request", `{}`)
	start := time.Now()
	_, answers, output := s.AnswerQuestions(t, func(map[string]any) {})
	if answers[0]["action"] != "decline" || answers[0]["reason"] != "timeout" || !strings.Contains(output, "declined") || time.Since(start) > time.Minute {
		t.Errorf("after %v: %v; the tool returned %s", time.Since(start), answers[0], output)
	}
}

func TestABundleWithTheNewestRevisionAsksInAChat(t *testing.T) {
	t.Parallel()
	p := testenv.StartModelProvider(t)
	s := harness.Serve(t, harness.Models(p, "openai"))
	script, err := os.ReadFile("asking.mjs")
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.Bundle(t, map[string]any{"name": "@e2e/asking", "server": map[string]any{
		"type": "node", "entry_point": "asking.mjs", "mcp_config": map[string]any{"command": "node", "args": []string{"${__dirname}/asking.mjs"}},
	}})
	harness.WriteFile(t, filepath.Join(dir, "asking.mjs"), string(script))
	s.Install(t, map[string]any{"path": dir})
	harness.ScriptToolCall(t, p, "asking__word", `{}`)
	questions, _, output := s.AnswerQuestions(t, func(q map[string]any) {
		s.Reply(t, q, `{"action":"accept","content":{}}`, 400, "invalid_input")
		s.Reply(t, q, `{"action":"accept","content":{"word":"rope"}}`, 200, "accept")
	})
	if len(questions) != 1 || questions[0]["message"] != "Which word?" || output != `the reply is {"action":"accept","content":{"word":"rope"}}` {
		t.Errorf("asked %v; the tool returned %s", questions, output)
	}
	a := s.Do(t, "POST", "/v1/chat", `{"message":"go"}`)
	var answer struct{ ToolCalls []struct{ Output string } }
	if err := json.Unmarshal([]byte(a.Body), &answer); err != nil || len(answer.ToolCalls) != 1 || answer.ToolCalls[0].Output != `the reply is {"action":"decline"}` {
		t.Errorf("without a stream: %d %s", a.Status, a.Body)
	}
}
