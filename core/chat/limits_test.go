package chat_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

func delegated(h *fixture, task string) error {
	_, _, err := h.tools.Call(h.t.Context(), owner(), tools.Call{Name: "system__delegate", Arguments: json.RawMessage(`{"task":"` + task + `"}`)})
	return err
}

func TestATaskDelegatedFromOutsideARunIsTreatedAsARun(t *testing.T) {
	h := open(t, "openai", nil, func(o *chat.Options) {
		o.Limits = limits.New(limits.Settings{AtATime: map[limits.Kind]int{limits.ChatRuns: 1}})
	})
	h.apps.add("files", "do", "")
	var second error
	h.apps.do["do"] = func(context.Context, string, func(rpc.Notification)) (string, error) {
		second = delegated(h, "the second")
		return `{"content":[]}`, nil
	}
	h.model.Say(t, titled, `{"match":{"userMessage":"the first","hasToolResult":false},"response":{"toolCalls":[{"name":"files__do","arguments":{}}]}}`,
		`{"match":{},"response":{"content":"Ok."}}`)
	if err := delegated(h, "the first"); err != nil {
		t.Fatal(err)
	}
	if core.CodeOf(second) != core.CodeRateLimited || !strings.Contains(second.Error(), "limits.chatRuns") {
		t.Errorf("a second task at the same time: %v", second)
	}
	if err := delegated(h, "the third"); err != nil {
		t.Errorf("a task after the first: %v", err)
	}
}

func TestTheDailyTokenLimitEndsARunAndADelegatedTask(t *testing.T) {
	h := open(t, "openai", nil, func(o *chat.Options) { o.TokensPerDay = 200 })
	h.apps.add("files", "do", "")
	h.model.Say(t, titled, `{"match":{},"response":{"toolCalls":[{"name":"files__do","arguments":{}}],"usage":{"prompt_tokens":60,"completion_tokens":50}}}`)
	answer, _ := h.must(chat.Request{Message: "go"})
	if answer.StopReason != chat.TokenBudget || answer.Usage.Iterations != 2 || !strings.Contains(answer.StopMessage, "limits.tokensPerDay") {
		t.Errorf("%+v", answer)
	}
	if err := delegated(h, "more"); core.CodeOf(err) != core.CodeRateLimited || !strings.Contains(err.Error(), "limits.tokensPerDay") {
		t.Errorf("a task after the last token: %v", err)
	}
	if n := len(h.asked()); n != 2 {
		t.Errorf("the model got %d requests", n)
	}
}

// changing is an Access that returns what now returns.
type changing struct {
	now func(core.Caller) (core.Caller, error)
}

func (c changing) Current(_ context.Context, caller core.Caller) (core.Caller, error) {
	return c.now(caller)
}

func TestATaskDelegatedFromOutsideARunEndsWithTheRightsOfItsCaller(t *testing.T) {
	for name, c := range map[string]struct {
		now   func(core.Caller) (core.Caller, error)
		calls int
	}{
		"nothing changes": {func(c core.Caller) (core.Caller, error) { return c, nil }, 1},
		"the store is unavailable": {func(core.Caller) (core.Caller, error) {
			return core.Caller{}, core.Errorf(core.CodeUnavailable, "away")
		}, 1},
		"the key is revoked": {func(core.Caller) (core.Caller, error) {
			return core.Caller{}, core.Errorf(core.CodeUnauthenticated, "revoked")
		}, 0},
		"the membership ended": {func(core.Caller) (core.Caller, error) {
			return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "left")
		}, 0},
		"the role is lower": {func(c core.Caller) (core.Caller, error) {
			c.Workspace.Role, c.User.OrgRole = core.RoleMember, core.RoleMember
			return c, nil
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, "openai", nil, func(o *chat.Options) { o.Access = changing{c.now} })
			h.apps.add("files", "do", "")
			h.model.Say(t, titled, `{"match":{"hasToolResult":false},"response":{"toolCalls":[{"name":"files__do","arguments":{}}]}}`,
				`{"match":{},"response":{"content":"Ok."}}`)
			if err := delegated(h, "do it"); err != nil {
				t.Log(err)
			}
			if n := len(h.apps.calls()); n != c.calls {
				t.Errorf("the app was called %d times, want %d", n, c.calls)
			}
		})
	}
}
