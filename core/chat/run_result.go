package chat

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// StopReason is why a run ended.
type StopReason string

// The reasons.
const (
	Complete      StopReason = "complete"
	MaxIterations StopReason = "max_iterations"
	TokenBudget   StopReason = "token_budget"
	Cancelled     StopReason = "cancelled"

	NoToolCalls   StopReason = "no_tool_calls"  // the model announced tool calls but made none
	ContentFilter StopReason = "content_filter" // the provider withheld the rest of the answer
	Refusal       StopReason = "refusal"        // the model refused to answer
	ContextWindow StopReason = "context_window" // the model's context is full
	UnknownEnd    StopReason = "unknown_end"    // the provider gave an unknown reason
	ProviderError StopReason = "provider_error" // the provider failed, before its answer or in the middle of it
	Incomplete    StopReason = "incomplete"     // the server stopped in the middle of the run
	Queued        StopReason = "queued"         // there is no run yet: the message waits for the one in progress
)

// StopReasons returns every stop reason that a run in the history may have, apart from Complete.
func StopReasons() []StopReason {
	return []StopReason{MaxIterations, TokenBudget, Cancelled, NoToolCalls, ContentFilter, Refusal, ContextWindow, UnknownEnd, ProviderError, Incomplete}
}

// Answer is the result of a run.
type Answer struct {
	Response       string     `json:"response"`
	ConversationID string     `json:"conversationId"`
	WorkspaceID    string     `json:"workspaceId"`
	SkillName      *string    `json:"skillName"`
	ToolCalls      []ToolCall `json:"toolCalls"`
	InputTokens    int64      `json:"inputTokens"`
	OutputTokens   int64      `json:"outputTokens"`
	StopReason     StopReason `json:"stopReason"`
	StopMessage    string     `json:"stopMessage,omitempty"` // explains StopReason to the person
	Usage          Usage      `json:"usage"`
}

// ToolCall is one tool call. Output is the part of its result that the model received.
type ToolCall struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Input       json.RawMessage `json:"input"`
	Account     string          `json:"account,omitempty"` // the name of the account with which the app was called
	Output      string          `json:"output"`
	OK          bool            `json:"ok"`
	Ms          int64           `json:"ms"`
	ResourceURI string          `json:"resourceUri,omitempty"`
	// Result is the complete result of the tool. It is only in the history.
	Result json.RawMessage `json:"result,omitempty"`
}

// Usage is the usage of a run. InputTokens does not include tokens read from or written to a cache. CostUSD is nil if
// the price of any call is unknown.
type Usage struct {
	InputTokens      int64    `json:"inputTokens"`
	OutputTokens     int64    `json:"outputTokens"`
	CacheReadTokens  int64    `json:"cacheReadTokens"`
	CacheWriteTokens int64    `json:"cacheWriteTokens"`
	CostUSD          *float64 `json:"costUsd"`
	Model            string   `json:"model"`
	LLMMs            int64    `json:"llmMs"`
	Iterations       int      `json:"iterations"`
}

// tally adds up the usage of a run's model calls, including those of its delegated tasks.
type tally struct {
	mu       sync.Mutex
	sum      Usage
	llm      time.Duration
	unpriced bool
}

func (t *tally) add(u core.Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.InputTokens += u.InputTokens
	t.sum.OutputTokens += u.OutputTokens
	t.sum.CacheReadTokens += u.CacheReadTokens
	t.sum.CacheWriteTokens += u.CacheWriteTokens
	t.llm += u.LLM
	switch {
	case u.CostUSD == nil:
		t.unpriced = true
	case t.sum.CostUSD == nil:
		cost := *u.CostUSD
		t.sum.CostUSD = &cost
	default:
		*t.sum.CostUSD += *u.CostUSD
	}
}

// total returns the sum so far, with the given model and number of iterations.
func (t *tally) total(model string, iterations int) Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.sum
	sum.Model, sum.Iterations, sum.LLMMs = model, iterations, t.llm.Milliseconds()
	if t.unpriced {
		sum.CostUSD = nil
	} else if sum.CostUSD != nil {
		cost := *sum.CostUSD
		sum.CostUSD = &cost
	}
	return sum
}

func (t *tally) tokens() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum.InputTokens + t.sum.OutputTokens + t.sum.CacheReadTokens + t.sum.CacheWriteTokens
}
