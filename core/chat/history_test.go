package chat_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
)

// shownMetadata is the part of an assistant message's metadata that a client reads.
type shownMetadata struct {
	ToolCalls    []chat.ToolCall `json:"toolCalls"`
	InputTokens  int64           `json:"inputTokens"`
	OutputTokens int64           `json:"outputTokens"`
	CostUSD      *float64        `json:"costUsd"`
	StopReason   chat.StopReason `json:"stopReason"`
	StopMessage  string          `json:"stopMessage"`
	Iterations   int             `json:"iterations"`
	Model        string          `json:"model"`
}

func metadataOf(t *testing.T, m core.Message) (shown shownMetadata) {
	t.Helper()
	if err := json.Unmarshal(m.Metadata, &shown); err != nil {
		t.Fatal(err)
	}
	return shown
}

func TestHistoryHasOneAssistantMessagePerRun(t *testing.T) {
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			h := open(t, protocol, nil)
			h.apps.add("files", "write", "")
			h.model.Say(t, titled, writes, wrote, `{"match":{"userMessage":"thanks"},"response":{"content":"Welcome."}}`)
			answer, _ := h.must(chat.Request{Message: "please write it"})
			h.must(chat.Request{Message: "thanks", ConversationID: answer.ConversationID})
			messages := must2(h.History(t.Context(), owner(), answer.ConversationID))
			if len(messages) != 4 || messages[1].Role != "assistant" || messages[2].Role != "user" || messages[3].Content != "Welcome." {
				t.Fatalf("messages %+v", messages)
			}
			if messages[1].Content != "I will write.\n\nIt is written." {
				t.Errorf("the texts of the turns are %q", messages[1].Content)
			}
			shown := metadataOf(t, messages[1])
			if shown.Iterations != 2 || len(shown.ToolCalls) != 1 || shown.ToolCalls[0].Output != "done: write" || shown.InputTokens != 30 || shown.OutputTokens != 12 || shown.Model != protocol+":test-model" {
				t.Errorf("metadata %+v", shown)
			}
			page, err := h.Conversations(t.Context(), owner(), core.ConversationQuery{})
			if err != nil || page.Conversations[0].MessageCount != 4 {
				t.Errorf("%+v, %v", page, err)
			}
		})
	}
}

func TestAForkCountsMessagesAsHistoryDoes(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote, `{"match":{"userMessage":"thanks"},"response":{"content":"Welcome."}}`)
	answer, _ := h.must(chat.Request{Message: "please write it"})
	h.must(chat.Request{Message: "thanks", ConversationID: answer.ConversationID})
	two := 2
	fork, err := h.Fork(t.Context(), owner(), answer.ConversationID, &two)
	if err != nil || fork.MessageCount != 2 {
		t.Fatalf("%+v, %v", fork, err)
	}
	messages := must2(h.History(t.Context(), owner(), fork.ID))
	if len(messages) != 2 || messages[1].Content != "I will write.\n\nIt is written." {
		t.Errorf("messages %+v", messages)
	}
	h.must(chat.Request{Message: "thanks", ConversationID: fork.ID})
	if got := must2(h.History(t.Context(), owner(), fork.ID)); len(got) != 4 {
		t.Errorf("%d messages after the next run", len(got))
	}
}

func TestHistoryKeepsTheOrderOfTextsAndToolCalls(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote)
	answer, _ := h.must(chat.Request{Message: "please write it"})
	const want = `[{"type":"text","text":"I will write."},{"type":"toolCall","index":0},{"type":"text","text":"It is written."}]`
	check := func(id string) {
		t.Helper()
		var shown struct{ Parts json.RawMessage }
		message := must2(h.History(t.Context(), owner(), id))[1]
		if err := json.Unmarshal(message.Metadata, &shown); err != nil || string(shown.Parts) != want {
			t.Errorf("parts %s, %v, want %s", shown.Parts, err, want)
		}
	}
	check(answer.ConversationID)
	fork, err := h.Fork(t.Context(), owner(), answer.ConversationID, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(fork.ID)
}

func TestHistoryKeepsTheOrderOfARunThatEndsWithItsToolCalls(t *testing.T) {
	h := open(t, "openai", nil)
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, wrote)
	one := 1
	answer, _ := h.must(chat.Request{Message: "please write it", MaxIterations: &one})
	message := must2(h.History(t.Context(), owner(), answer.ConversationID))[1]
	var shown struct{ Parts json.RawMessage }
	if err := json.Unmarshal(message.Metadata, &shown); err != nil || string(shown.Parts) != `[{"type":"text","text":"I will write."},{"type":"toolCall","index":0}]` {
		t.Errorf("%s, %v", message.Metadata, err)
	}
	if meta := metadataOf(t, message); meta.StopReason != chat.MaxIterations || meta.StopMessage != answer.StopMessage || meta.StopMessage == "" || meta.Iterations != 1 {
		t.Errorf("%s should explain why the run ended", message.Metadata)
	}
}

func TestARunKeepsItsCostIfALaterTurnHasUnknownUsage(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(prices, []byte(`{"openai:test-model":{"input":1,"output":10}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, "openai", func(c *config.Models) { c.Prices = prices })
	h.apps.add("files", "write", "")
	h.model.Say(t, titled, writes, `{"match":{"userMessage":"write it","hasToolResult":true},"response":{"error":{"message":"bad key","type":"authentication_error"},"status":401}}`)
	run, err := h.Begin(t.Context(), owner(), chat.Request{Message: "please write it"})
	if err != nil {
		t.Fatal(err)
	}
	events := &tape{}
	if _, err := run.Do(t.Context(), events.emit); core.CodeOf(err) != core.CodeProviderAuth {
		t.Fatal(err)
	}
	id := events.data("chat.start")[0]["conversationId"].(string)
	message := must2(h.History(t.Context(), owner(), id))[1]
	if meta := metadataOf(t, message); meta.StopReason != chat.ProviderError || meta.InputTokens != 10 || meta.CostUSD == nil || math.Abs(*meta.CostUSD-60e-6) > 1e-9 {
		t.Errorf("metadata %s", message.Metadata)
	}
}

func TestAnEmptyAnswerIsInTheHistory(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(empty.Close)
	h := open(t, "openai", func(m *config.Models) {
		m.Providers["openai"] = config.ModelProvider{Type: config.ProviderOpenAI, BaseURL: empty.URL, APIKey: "k"}
	})
	answer, _ := h.must(chat.Request{Message: "hi"})
	messages := must2(h.History(t.Context(), owner(), answer.ConversationID))
	if answer.StopReason != chat.Complete || len(messages) != 2 || messages[1].Role != "assistant" || messages[1].Content != "" {
		t.Errorf("%+v, kept %+v", answer, messages)
	}
}

func TestAMessageWithoutToolCallsHasNoParts(t *testing.T) {
	h := open(t, "openai", nil)
	h.model.Say(t, titled, `{"match":{"userMessage":"thanks"},"response":{"content":"Welcome."}}`)
	answer, _ := h.must(chat.Request{Message: "thanks"})
	message := must2(h.History(t.Context(), owner(), answer.ConversationID))[1]
	var shown map[string]any
	if err := json.Unmarshal(message.Metadata, &shown); err != nil || shown["parts"] != nil || shown["iterations"] != 1.0 {
		t.Errorf("%s, %v", message.Metadata, err)
	}
}
