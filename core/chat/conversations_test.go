package chat_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func budget(tokens int) func(*config.Models) {
	return func(c *config.Models) { c.TokenBudget = tokens }
}

func TestAConversationContinuesWithAnotherVendorsModel(t *testing.T) {
	h := open(t, "anthropic", nil)
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote, `{"match":{"userMessage":"and now"},"response":{"content":"Now this."}}`)
	first, _ := h.must(chat.Request{Message: "write it"})
	answer, _ := h.must(chat.Request{Message: "and now", ConversationID: first.ConversationID, Model: "openai:other"})
	asked := h.asked()
	last := asked[len(asked)-1]
	if answer.Usage.Model != "openai:other" || last["model"] != "other" {
		t.Errorf("it asked the model %v", last["model"])
	}
	var roles []string
	for _, m := range last["messages"].([]any) {
		roles = append(roles, m.(map[string]any)["role"].(string))
	}
	if got := strings.Join(roles, " "); got != "system user assistant tool assistant user" {
		t.Errorf("the model received %s", text(last["messages"]))
	}
}

func TestTheFastModelWritesTheTitle(t *testing.T) {
	h := open(t, "anthropic", func(c *config.Models) { c.Fast = "openai:quick" })
	h.model.Say(t, titled, `{"match":{},"response":{"content":"Hello."}}`)
	answer, _ := h.must(chat.Request{Message: "hi"})
	conversation := func() core.Conversation {
		c, err := h.store.Conversation(t.Context(), owner().Conversation(answer.ConversationID))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	testkit.Eventually(t, "the conversation has a title", func() bool { return conversation().Title != "" })
	if got := conversation().Title; got != "A fine title" {
		t.Errorf("the title is %q", got)
	}
	for _, a := range h.model.Journal(t) {
		title := strings.Contains(text(a.Body["messages"]), "Write a title")
		if title != (a.Body["model"] == "quick") {
			t.Errorf("%v was asked; for a title: %v", a.Body["model"], title)
		}
	}
	report, err := h.Usage(t.Context(), owner(), core.UsageQuery{GroupBy: core.UsageByModel})
	if err != nil || len(report.Models) != 2 {
		t.Errorf("usage of %+v, %v", report.Models, err)
	}
}

func TestAConversationHasOneRun(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "do", "")
	entered := make(chan struct{})
	h.apps.do["do"] = func(ctx context.Context, _ string, _ func(rpc.Notification)) (string, error) {
		close(entered)
		<-ctx.Done()
		return ``, ctx.Err()
	}
	h.model.Say(t, titled, asks(`{"name":"files__do","arguments":{}}`), `{"match":{"userMessage":"other"},"response":{"content":"Ok."}}`)
	run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "go"})
	if err != nil {
		t.Fatal(err)
	}
	events, over := &tape{}, make(chan chat.Answer)
	go func() {
		answer, _ := run.Do(t.Context(), events.emit)
		over <- answer
	}()
	<-entered
	id := events.data("chat.start")[0]["conversationId"].(string)
	if _, err := h.Begin(t.Context(), owner(), chat.Request{Message: "me too", ConversationID: id}); core.CodeOf(err) != core.CodeRunInProgress {
		t.Errorf("a second run returned %v", err)
	}
	h.must(chat.Request{Message: "other"}) // in another conversation
	start := time.Now()
	if err := h.Delete(t.Context(), owner(), id); err != nil || time.Since(start) > 20*time.Second {
		t.Errorf("deleting it returned %v after %v", err, time.Since(start))
	}
	if answer := <-over; answer.StopReason != chat.Cancelled {
		t.Errorf("the run ended with %+v", answer)
	}
	if _, err := h.History(t.Context(), owner(), id); core.CodeOf(err) != core.CodeNotFound {
		t.Errorf("reading its history returned %v", err)
	}
}

// If a server was killed between a model's turn and the tool results, stored calls have no results. Providers reject
// such messages.
func TestACallWithoutAStoredResultGetsOne(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.model.Say(t, titled, `{"match":{},"response":{"content":"Ok."}}`)
			first, _ := h.must(chat.Request{Message: "hi"})
			blocks := `[{"role":"assistant","blocks":[{"type":"tool_use","id":"lost","name":"files__do","input":{}}]}]`
			ref := owner().Conversation(first.ConversationID)
			if _, err := h.store.AppendMessages(t.Context(), ref, []core.Message{
				{Role: "user", Content: "go"}, {Role: "assistant", Blocks: json.RawMessage(blocks)},
			}); err != nil {
				t.Fatal(err)
			}
			h.must(chat.Request{Message: "more", ConversationID: first.ConversationID})
			asked := h.asked()
			got := text(asked[len(asked)-1]["messages"])
			if !strings.Contains(got, "The run ended before the tool answered.") || strings.Count(got, `"lost"`) != 2 {
				t.Errorf("the model got %s", got)
			}
		})
	}
}

func TestSkillsAreSelectedByTheMessage(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "read", "")
	h.apps.add("mail", "send", "")
	h.model.Say(t, titled, `{"match":{},"response":{"content":"Ok."}}`)
	skills := filepath.Join(h.home, "skills")
	if err := os.MkdirAll(skills, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(skills, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("manners.md", "---\nname: manners\ntype: context\n---\nAlways be kind.")
	put("report.md", "---\nname: report\nallowed-tools: [files__*]\nmetadata:\n  triggers: [weekly report]\n---\nWrite it as a table.")
	answer, _ := h.must(chat.Request{Message: "my Weekly Report please"})
	asked := h.asked()[0]
	if answer.SkillName == nil || *answer.SkillName != "report" || !strings.Contains(text(asked["messages"]), "Write it as a table.") || !strings.Contains(text(asked["messages"]), "Always be kind.") {
		t.Errorf("skill %v: %s", answer.SkillName, text(asked["messages"]))
	}
	if got := strings.Join(offered(asked), " "); !strings.Contains(got, "files__read") || strings.Contains(got, "mail__send") {
		t.Errorf("it is offered %s", got)
	}
	put("report.md", "---\nname: report\nmetadata:\n  triggers: [something else entirely]\n---\nWrite it as a table.")
	answer, _ = h.must(chat.Request{Message: "my Weekly Report please"})
	if answer.SkillName != nil || strings.Contains(text(h.asked()[1]["messages"]), "as a table") {
		t.Errorf("a skill that was changed is still picked: %v", *answer.SkillName)
	}
}

func TestARunCanDelegateATask(t *testing.T) {
	h := open(t, "anthropic", nil)
	h.apps.add("files", "read", "")
	h.apps.add("mail", "send", "")
	h.model.Say(t, titled,
		`{"match":{"userMessage":"go","hasToolResult":false},"response":{"toolCalls":[{"id":"d1","name":"system__delegate","arguments":{"task":"count them"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}}`,
		`{"match":{"userMessage":"go","hasToolResult":true},"response":{"content":"There are three.","usage":{"prompt_tokens":20,"completion_tokens":2}}}`,
		`{"match":{"userMessage":"count them","hasToolResult":false},"response":{"toolCalls":[{"name":"files__read","arguments":{}},{"name":"mail__send","arguments":{}},{"name":"system__delegate","arguments":{"task":"x"}}],"usage":{"prompt_tokens":100,"completion_tokens":3}}}`,
		`{"match":{"userMessage":"count them","hasToolResult":true},"response":{"content":"Three.","usage":{"prompt_tokens":200,"completion_tokens":4}}}`)
	answer, events := h.must(chat.Request{Message: "go", AllowedTools: []string{"files__*", "system__*"}})
	if answer.Response != "There are three." || len(answer.ToolCalls) != 1 || !strings.Contains(answer.ToolCalls[0].Output, "Three.") {
		t.Errorf("%+v", answer)
	}
	if answer.InputTokens != 330 || answer.OutputTokens != 10 {
		t.Errorf("%d and %d tokens were used", answer.InputTokens, answer.OutputTokens)
	}
	if got := strings.Join(h.apps.calls(), "; "); got != "files read {}" {
		t.Errorf("the task called %s, but it may call only the tools of the run that delegated it", got)
	}
	progress := text(events.data("tool.progress"))
	if !strings.Contains(progress, "calls files__read") || !strings.Contains(progress, `"id":"d1"`) {
		t.Errorf("progress %s", progress)
	}
	if messages, _ := h.History(t.Context(), owner(), answer.ConversationID); len(messages) != 2 {
		t.Errorf("%d messages are stored: those of the task do not belong to the conversation", len(messages))
	}
}

func TestAnAdminSetsTheModels(t *testing.T) {
	h := open(t, "anthropic", nil)
	h.model.Say(t, titled, `{"match":{},"response":{"content":"Ok."}}`)
	set := func(arguments string) string {
		raw, _, err := h.tools.Call(t.Context(), owner(), tools.Call{Name: "system__set_model_config", Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(raw), `\"`, `"`)
	}
	for arguments, want := range map[string]string{
		`{"default":"gpt-5"}`:     "provider:model",
		`{"default":"nobody:x"}`:  "does not exist",
		`{"fast":"openai:quick"}`: `"fast":"openai:quick"`,
	} {
		if got := set(arguments); !strings.Contains(got, want) {
			t.Errorf("%s gives %s", arguments, got)
		}
	}
	set(`{"default":"openai:chosen"}`)
	if answer, _ := h.must(chat.Request{Message: "hi"}); answer.Usage.Model != "openai:chosen" {
		t.Errorf("it asked %s", answer.Usage.Model)
	}
	if model, err := h.Model(t.Context()); err != nil || model != "openai:chosen" {
		t.Errorf("the current model is %q: %v", model, err)
	}
	if got := set(`{"default":""}`); !strings.Contains(got, `"default":"anthropic:test-model"`) {
		t.Errorf("back to the configuration: %s", got)
	}
}

func TestCostsAreKnownByModel(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(prices, []byte(`{"anthropic:test-model":{"input":1,"output":10}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, "anthropic", func(c *config.Models) { c.Prices = prices })
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote)
	answer, _ := h.must(chat.Request{Message: "write it"})
	if c := answer.Usage.CostUSD; c == nil || *c < 0.000149 || *c > 0.000151 {
		t.Errorf("it cost %v", c)
	}
	if answer, _ = h.must(chat.Request{Message: "write it", Model: "openai:unknown"}); answer.Usage.CostUSD != nil {
		t.Errorf("a model without a price cost %v", *answer.Usage.CostUSD)
	}
}

func TestASkillsAllowedToolsApplyToSystemToolsToo(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "read", "")
	h.model.Say(t, titled, `{"match":{"hasToolResult":false},"response":{"toolCalls":[{"name":"system__delegate","arguments":{"task":"x"}}]}}`, `{"match":{"hasToolResult":true},"response":{"content":"Ok."}}`)
	skills := filepath.Join(h.home, "skills")
	if err := os.MkdirAll(skills, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(skills, "report.md"), []byte("---\nname: report\nallowed-tools: [files__*, system__search]\nmetadata:\n  triggers: [weekly report]\n---\nx"), 0o644); err != nil {
		t.Fatal(err)
	}
	answer, _ := h.must(chat.Request{Message: "my weekly report"})
	if got := strings.Join(offered(h.asked()[0]), " "); got != "files__read system__search system__read_result" {
		t.Errorf("it is offered %s", got)
	}
	if len(answer.ToolCalls) != 1 || answer.ToolCalls[0].OK || !strings.Contains(answer.ToolCalls[0].Output, "no tool") {
		t.Errorf("%+v", answer.ToolCalls)
	}
}
