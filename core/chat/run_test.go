package chat_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
)

// titled answers requests for titles.
const titled = `{"match":{"systemMessage":"Write a title"},"response":{"content":"\"A fine title.\"","usage":{"prompt_tokens":3,"completion_tokens":2}}}`

const writes = `{"match":{"userMessage":"write it","hasToolResult":false},"response":{"content":"I will write.","toolCalls":[{"id":"call_1","name":"files__write","arguments":{"path":"a.txt"}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}}`

const wrote = `{"match":{"userMessage":"write it","hasToolResult":true},"response":{"content":"It is written.","usage":{"prompt_tokens":20,"completion_tokens":7}}}`

func TestARunCallsToolsAndIsStored(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.apps.add("files", "write", `,"_meta":{"ui":{"resourceUri":"ui://files/files/view"}}`)
			h.apps.listed[0].ViewURI = "ui://files/view"
			h.model.Say(t, titled, writes, wrote)
			answer, events := h.must(chat.Request{Message: "please write it", Metadata: json.RawMessage(`{"from":"test"}`)})

			if want := []string{"chat.start", "text.delta", "tool.start", "tool.done", "text.delta", "done"}; !slices.Equal(events.names(), want) {
				t.Errorf("events %v, want %v", events.names(), want)
			}
			if answer.Response != "I will write.\n\nIt is written." || answer.StopReason != chat.Complete || answer.InputTokens != 30 || answer.OutputTokens != 12 {
				t.Errorf("answer %+v", answer)
			}
			streamed := ""
			for _, delta := range events.data("text.delta") {
				streamed += delta["text"].(string)
			}
			if streamed != answer.Response {
				t.Errorf("streamed %q, answered %q", streamed, answer.Response)
			}
			if u := answer.Usage; u.Model != protocol+":test-model" || u.Iterations != 2 || u.CostUSD != nil {
				t.Errorf("usage %+v", u)
			}
			if len(answer.ToolCalls) != 1 || answer.ToolCalls[0].Name != "files__write" || answer.ToolCalls[0].Output != "done: write" || !answer.ToolCalls[0].OK {
				t.Errorf("tool calls %+v", answer.ToolCalls)
			}
			if got := h.apps.calls(); !slices.Equal(got, []string{`files write {"path":"a.txt"}`}) {
				t.Errorf("the app received %q", got)
			}
			if got := h.changed(); !slices.Equal(got, []string{"files__write"}) {
				t.Errorf("data.changed for %v", got)
			}
			done := events.data("tool.done")[0]
			if done["resourceUri"] != "ui://files/files/view" || done["ok"] != true || done["result"] == nil || done["output"] != "done: write" {
				t.Errorf("tool.done %v", done)
			}
			h.wasKept(answer)
		})
	}
}

// wasKept checks what the store contains about the run in TestARunCallsToolsAndIsStored.
func (h *fixture) wasKept(answer chat.Answer) {
	h.t.Helper()
	if err := h.Close(h.t.Context()); err != nil { // this also ends the title generation
		h.t.Log(err)
	}
	messages, err := h.History(h.t.Context(), owner(), answer.ConversationID)
	if err != nil || len(messages) != 2 {
		h.t.Fatalf("%d messages, %v", len(messages), err)
	}
	if messages[0].Content != "please write it" || messages[1].Content != answer.Response {
		h.t.Errorf("messages %+v", messages)
	}
	if !strings.Contains(string(messages[1].Metadata), `"name":"files__write"`) || !strings.Contains(string(messages[1].Metadata), `"output":"done: write"`) {
		h.t.Errorf("metadata %s", messages[1].Metadata)
	}
	report, err := h.Usage(h.t.Context(), owner(), core.UsageQuery{GroupBy: core.UsageByModel})
	if err != nil || report.Totals.InputTokens < 30 || report.Totals.OutputTokens < 12 || report.Totals.ToolCalls != 1 || report.Totals.CostUSD != nil {
		h.t.Errorf("usage %+v, %v", report.Totals, err)
	}
	all, err := h.Recent(h.t.Context(), owner())
	if err != nil || len(all) != 1 || string(all[0].Metadata) != `{"from":"test"}` {
		h.t.Errorf("recent %+v, %v", all, err)
	}
}

func TestTheCallersAccessIsCheckedBeforeEachModelCallAndToolCall(t *testing.T) {
	for name, c := range map[string]struct{ good, asked, called int }{
		"lost before the first model call":  {0, 0, 0},
		"lost before the tool call":         {1, 1, 0},
		"lost after the tool call":          {2, 1, 1},
		"lost before the second model call": {3, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, "anthropic", nil)
			h.apps.add("files", "write", "")
			h.model.Say(t, titled, writes, wrote)
			run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "write it"})
			if err != nil {
				t.Fatal(err)
			}
			const sentence = "The run ended because your login is no longer valid."
			checks := 0 // no locking: there is only one tool call
			run.Guard(func(context.Context) (core.Caller, error) {
				if checks++; checks > c.good {
					return owner(), core.Errorf(core.CodeUnauthenticated, sentence)
				}
				return owner(), nil
			})
			answer, err := run.Do(t.Context(), (&tape{}).emit)
			if err != nil || answer.StopReason != chat.Cancelled || answer.StopMessage != sentence {
				t.Errorf("%+v %v", answer, err)
			}
			if asked, called := len(h.asked()), len(h.apps.calls()); asked != c.asked || called != c.called {
				t.Errorf("the model got %d requests, want %d; the app was called %d times, want %d", asked, c.asked, called, c.called)
			}
			messages, err := h.History(t.Context(), owner(), answer.ConversationID)
			if err != nil || len(messages) != 2 {
				t.Fatalf("history: %+v %v", messages, err)
			}
			if meta := metadataOf(t, messages[1]); meta.StopReason != chat.Cancelled || meta.StopMessage != sentence || meta.Iterations != c.asked {
				t.Errorf("metadata %s", messages[1].Metadata)
			}
		})
	}
}

func TestARunFollowsTheRightsOfItsCaller(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote)
	run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "write it"})
	if err != nil {
		t.Fatal(err)
	}
	run.Guard(func(context.Context) (core.Caller, error) {
		now := owner()
		now.Workspace.ID = "ws_other" // the caller now has access to another workspace
		return now, nil
	})
	if _, err := run.Do(t.Context(), (&tape{}).emit); err != nil {
		t.Fatal(err)
	}
	for _, c := range h.apps.Calls() {
		if c.Workspace != "ws_other" {
			t.Errorf("%s was called with the rights from the start of the run", c.Server)
		}
	}
}
