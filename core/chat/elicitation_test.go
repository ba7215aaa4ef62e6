package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/chat/elicit"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

const form = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":2},"email":{"type":"string","format":"email"}},"required":["name"]}}`

const address = `{"mode":"url","message":"Log in.","url":"https://idp.example/login?x=1","elicitationId":"e1"}`

// asksFor adds a tool that asks a question and returns the reply as its result.
func (h *fixture) asksFor(params string) {
	h.apps.add("files", "do", "")
	h.apps.asking["do"] = func(ctx context.Context, k interact.Asker) (string, error) {
		reply, err := k.Ask(ctx, rpc.Question{Method: "elicitation/create", Params: json.RawMessage(params)})
		if err != nil {
			return "", err
		}
		return `{"content":[{"type":"text","text":` + string(must(json.Marshal(string(reply)))) + `}]}`, nil
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

// answering starts a run and calls each for every question in it.
func (h *fixture) answering(ctx context.Context, each func(question map[string]any)) (chat.Answer, *tape) {
	h.t.Helper()
	h.model.Say(h.t, titled, asks(`{"id":"call_1","name":"files__do","arguments":{}}`), doneReply)
	run, err := h.Begin(h.t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		h.t.Fatal(err)
	}
	events := &tape{}
	events.each = func(e chat.Event) {
		if e.Name == elicit.EventRequest {
			go each(events.data(e.Name)[len(events.data(e.Name))-1])
		}
	}
	answer, err := run.Do(ctx, events.emit)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer, events
}

func otherUser() core.Caller {
	c := owner()
	c.User.ID = "usr_stranger"
	return c
}

func elsewhere() core.Caller {
	c := owner()
	c.Workspace.ID = "ws_elsewhere"
	return c
}

// attempt sends a reply and checks the error code; "" means no error.
func attempt(t *testing.T, e *chat.Engine, c core.Caller, id any, action, content string, want core.Code) {
	t.Helper()
	err := e.Reply(t.Context(), c, id.(string), elicit.Reply{Action: action, Content: json.RawMessage(content)})
	if got := core.CodeOf(err); err == nil && want != "" || err != nil && got != want {
		t.Errorf("%s %s gives %v, want %q", action, content, err, want)
	}
}

func TestAPersonAnswersAFormOfAnApp(t *testing.T) {
	h := open(t, "anthropic", nil)
	h.asksFor(form)
	tried := h.untilTried()
	answer, events := h.answering(t.Context(), func(q map[string]any) {
		defer tried()
		e := h.Engine
		attempt(t, e, otherUser(), q["id"], elicit.Accept, `{"name":"Eve"}`, core.CodeNotFound)
		attempt(t, e, elsewhere(), q["id"], elicit.Accept, `{"name":"Eve"}`, core.CodeNotFound)
		attempt(t, e, owner(), "elic_0000000000000000", elicit.Accept, `{"name":"Ada"}`, core.CodeNotFound)
		attempt(t, e, owner(), q["id"], "yes", ``, core.CodeBadRequest)
		attempt(t, e, owner(), q["id"], elicit.Accept, `["Ada"]`, core.CodeBadRequest)
		attempt(t, e, owner(), q["id"], elicit.Accept, ``, core.CodeInvalidInput)
		attempt(t, e, owner(), q["id"], elicit.Accept, `{"name":"A"}`, core.CodeInvalidInput)
		attempt(t, e, owner(), q["id"], elicit.Accept, `{"name":"Ada","email":"none"}`, core.CodeInvalidInput)
		attempt(t, e, owner(), q["id"], elicit.Accept, `{"name":"Ada","email":"ada@example.com"}`, "")
		attempt(t, e, owner(), q["id"], elicit.Decline, ``, core.CodeAlreadyAnswered)
	})
	if out := answer.ToolCalls[0].Output; out != `{"action":"accept","content":{"name":"Ada","email":"ada@example.com"}}` {
		t.Errorf("the app got %s", out)
	}
	if want := []string{"chat.start", "tool.start", "elicitation.request", "elicitation.answer", "tool.done", "text.delta", "done"}; !slices.Equal(events.names(), want) {
		t.Errorf("events %v", events.names())
	}
	q, a := events.data(elicit.EventRequest)[0], events.data(elicit.EventAnswer)[0]
	if q["toolCallId"] != "call_1" || q["server"] != "files" || q["tool"] != "do" || q["mode"] != "form" || q["message"] != "Who are you?" || !strings.Contains(text(q["requestedSchema"]), `"minLength":2`) {
		t.Errorf("asked %v", q)
	}
	if until, err := time.Parse(time.RFC3339, q["expiresAt"].(string)); err != nil || time.Until(until) < 4*time.Minute || time.Until(until) > 5*time.Minute {
		t.Errorf("it waits until %v, %v", until, err)
	}
	if a["id"] != q["id"] || a["action"] != "accept" || a["reason"] != "person" {
		t.Errorf("answered %v", a)
	}
	attempt(t, h.Engine, owner(), q["id"], elicit.Decline, ``, core.CodeNotFound) // the run has ended
	for _, m := range must2(h.History(t.Context(), owner(), answer.ConversationID)) {
		if strings.Contains(m.Content, "ada@example.com") {
			t.Errorf("a submitted form is stored as a message: %s", m.Content)
		}
	}
}

// untilTried keeps the app's call, and with it the question, open until the returned function is called. A test calls
// it once all replies have been tried.
func (h *fixture) untilTried() func() {
	tried := make(chan struct{})
	ask := h.apps.asking["do"]
	h.apps.asking["do"] = func(ctx context.Context, k interact.Asker) (string, error) {
		out, err := ask(ctx, k)
		<-tried
		return out, err
	}
	return func() { close(tried) }
}

func must2(all []core.Message, err error) []core.Message {
	if err != nil {
		panic(err)
	}
	return all
}

func TestAUserIsSentToAURL(t *testing.T) {
	h := open(t, "openai", nil)
	h.asksFor(address)
	answer, events := h.answering(t.Context(), func(q map[string]any) {
		h.apps.Notify("", apps.Notification{Server: "files", Notification: rpc.Notification{Method: "notifications/elicitation/complete", Params: json.RawMessage(`{"elicitationId":"e1"}`)}})
		h.apps.Notify("", apps.Notification{Server: "files", Session: "chat conv_other", Notification: rpc.Notification{Method: "notifications/elicitation/complete", Params: json.RawMessage(`{"elicitationId":"e2"}`)}})
		attempt(t, h.Engine, owner(), q["id"], elicit.Accept, `{"password":"secret"}`, "") // the content is ignored
	})
	if out := answer.ToolCalls[0].Output; out != `{"action":"accept"}` {
		t.Errorf("the app got %s", out)
	}
	q := events.data(elicit.EventRequest)[0]
	if q["mode"] != "url" || q["url"] != "https://idp.example/login?x=1" || q["elicitationId"] != "e1" || q["requestedSchema"] != nil {
		t.Errorf("asked %v", q)
	}
	if done := events.data(elicit.EventComplete); len(done) != 1 || done[0]["elicitationId"] != "e1" {
		t.Errorf("complete: %v", done)
	}
}

func TestAQuestionThatNobodyAnswersIsDeclinedAfterATimeout(t *testing.T) {
	h := open(t, "openai", nil)
	h.SetQuestionTimeout(50 * time.Millisecond)
	h.asksFor(form)
	answer, events := h.answering(t.Context(), func(map[string]any) {})
	if out := answer.ToolCalls[0].Output; out != `{"action":"decline"}` {
		t.Errorf("the app got %s", out)
	}
	if a := events.data(elicit.EventAnswer)[0]; a["action"] != "decline" || a["reason"] != "timeout" {
		t.Errorf("answered %v", a)
	}
}

func TestAUserWhoDisconnectsCancelsTheQuestion(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "do", "")
	got := make(chan string, 1)
	h.apps.asking["do"] = func(ctx context.Context, k interact.Asker) (string, error) {
		reply, err := k.Ask(ctx, rpc.Question{Method: "elicitation/create", Params: json.RawMessage(form)})
		got <- fmt.Sprint(string(reply), err)
		return "", ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	answer, _ := h.answering(ctx, func(map[string]any) { leave() })
	if answer.StopReason != chat.Cancelled {
		t.Errorf("the run ended with %s", answer.StopReason)
	}
	if reply := <-got; reply != `{"action":"cancel"}<nil>` {
		t.Errorf("the app got %s", reply)
	}
	if err := h.Delete(t.Context(), owner(), answer.ConversationID); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "what apps keep for the conversation is deleted with it", func() bool {
		return slices.Contains(h.apps.Operations(), "end chat "+answer.ConversationID)
	})
}

func TestAQuestionIsDeclinedInAnUnstreamedAnswer(t *testing.T) {
	h := open(t, "openai", nil)
	h.asksFor(form)
	h.model.Say(t, titled, asks(`{"name":"files__do","arguments":{}}`), doneReply)
	run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := run.Do(t.Context(), nil)
	if err != nil || answer.ToolCalls[0].Output != `{"action":"decline"}` {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestQuestionsThatCannotBeShownAreRefused(t *testing.T) {
	for name, params := range map[string]string{
		"no message":               `{"requestedSchema":{"type":"object"}}`,
		"no schema":                `{"message":"m"}`,
		"a schema for a list":      `{"message":"m","requestedSchema":{"type":"array"}}`,
		"another mode":             `{"mode":"voice","message":"m"}`,
		"the address of a file":    `{"mode":"url","message":"m","url":"file:///etc/passwd","elicitationId":"e"}`,
		"a script":                 `{"mode":"url","message":"m","url":"javascript:alert(1)","elicitationId":"e"}`,
		"an address without an ID": `{"mode":"url","message":"m","url":"https://a.example"}`,
		"too long":                 `{"message":"` + strings.Repeat("m", 64<<10) + `","requestedSchema":{"type":"object"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, "openai", nil)
			h.apps.add("files", "do", "")
			h.apps.asking["do"] = func(ctx context.Context, k interact.Asker) (string, error) {
				_, err := k.Ask(ctx, rpc.Question{Method: "elicitation/create", Params: json.RawMessage(params)})
				if refused, ok := errors.AsType[*rpc.Error](err); !ok || refused.Code != -32602 {
					t.Errorf("%v", err)
				}
				_, err = k.Ask(ctx, rpc.Question{Method: "sampling/createMessage", Params: json.RawMessage(`{}`)})
				if refused, ok := errors.AsType[*rpc.Error](err); !ok || refused.Code != -32601 {
					t.Errorf("sampling: %v", err)
				}
				return `{"content":[]}`, nil
			}
			_, events := h.answering(t.Context(), func(map[string]any) {})
			if asked := events.data(elicit.EventRequest); len(asked) != 0 {
				t.Errorf("the person received %v", asked)
			}
		})
	}
}

// MCP 2025-11-25, client/elicitation: a call that fails with -32042 is repeated after the person has visited the URL.
func TestACallThatNeedsAURLVisitIsRepeatedAfterIt(t *testing.T) {
	for action, want := range map[string]string{elicit.Accept: "2 Here.", elicit.Decline: "1 Log in first."} {
		t.Run(action, func(t *testing.T) {
			h := open(t, "openai", nil)
			h.apps.add("files", "do", "")
			calls := 0
			h.apps.asking["do"] = func(context.Context, interact.Asker) (string, error) {
				if calls++; calls == 1 {
					return "", &rpc.Error{Code: -32042, Message: "Log in first.", Data: json.RawMessage(`{"elicitations":[` + address + `]}`)}
				}
				return `{"content":[{"type":"text","text":"Here."}]}`, nil
			}
			answer, _ := h.answering(t.Context(), func(q map[string]any) { attempt(t, h.Engine, owner(), q["id"], action, ``, "") })
			if got := fmt.Sprint(calls, " ", answer.ToolCalls[0].Output); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestAReplyReachesTheRunThroughAnotherServer(t *testing.T) {
	a, b, _ := twoServers(t)
	a.asksFor(form)
	tried := a.untilTried()
	answer, events := a.answering(t.Context(), func(q map[string]any) {
		defer tried()
		attempt(t, b.Engine, otherUser(), q["id"], elicit.Accept, `{"name":"Eve"}`, core.CodeNotFound)
		attempt(t, b.Engine, owner(), q["id"], elicit.Accept, `{"name":"A"}`, core.CodeInvalidInput)
		attempt(t, b.Engine, owner(), q["id"], elicit.Accept, `{"name":"Ada"}`, "")
		attempt(t, a.Engine, owner(), q["id"], elicit.Decline, ``, core.CodeAlreadyAnswered)
		attempt(t, b.Engine, owner(), q["id"], elicit.Decline, ``, core.CodeAlreadyAnswered)
	})
	if out := answer.ToolCalls[0].Output; out != `{"action":"accept","content":{"name":"Ada"}}` {
		t.Errorf("the app got %s", out)
	}
	if said := events.data(elicit.EventAnswer)[0]; said["reason"] != "person" {
		t.Errorf("answered %v", said)
	}
	id := events.data(elicit.EventRequest)[0]["id"]
	attempt(t, b.Engine, owner(), id, elicit.Decline, ``, core.CodeNotFound)
}
