package core

import "time"

// Usage is the consumption of one model call.
type Usage struct {
	Workspace        string
	User             string // User.ID
	Conversation     string // "" if it was not part of one
	Model            string // provider:model
	At               time.Time
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  int64
	CacheWriteTokens int64
	CostUSD          *float64 // nil if no price is known
	LLM              time.Duration
	ToolCalls        int // tool calls that the model's answer requested
}

// UsageGroup is the dimension by which a usage report is broken down.
type UsageGroup string

// The groups.
const (
	UsageByDay          UsageGroup = "day"
	UsageByModel        UsageGroup = "model"
	UsageByConversation UsageGroup = "conversation"
	UsageByUser         UsageGroup = "user"
)

// UsageQuery selects the usage of one workspace, from From (inclusive) to To (exclusive).
type UsageQuery struct {
	Workspace string
	User      string    // User.ID; "" means everybody's
	From      time.Time // zero means from the beginning
	To        time.Time // zero means no end
	GroupBy   UsageGroup
}

// UsageTotals is the total of several model calls.
type UsageTotals struct {
	InputTokens      int64    `json:"inputTokens"`
	OutputTokens     int64    `json:"outputTokens"`
	CacheReadTokens  int64    `json:"cacheReadTokens"`
	CacheWriteTokens int64    `json:"cacheWriteTokens"`
	CostUSD          *float64 `json:"costUsd"` // the cost of the calls with a known price; nil if no price is known
	LLMCalls         int64    `json:"llmCalls"`
	UnpricedCalls    int64    `json:"unpricedCalls"` // those of LLMCalls that are not included in CostUSD
	LLMMs            int64    `json:"llmMs"`
	Conversations    int64    `json:"conversations"` // number of distinct conversations
	ToolCalls        int64    `json:"toolCalls"`
}

// ModelUsage is one model's share.
type ModelUsage struct {
	Model string `json:"model"`
	UsageTotals
}

// GroupUsage is one group's share. Key is the day as 2006-01-02 (UTC), the model, the conversation's
// id ("" for calls without a conversation), or the user's id. Label is a readable name: the email of a
// user who still exists.
type GroupUsage struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	UsageTotals
}

// UsageReport is the result of a UsageQuery. Days are in chronological order; models and conversations are
// sorted by tokens, highest first. Only the first 500 conversations are listed.
type UsageReport struct {
	Totals    UsageTotals
	Models    []ModelUsage
	Breakdown []GroupUsage
}

// SumKnown adds the values that are known. It returns nil if neither is.
func SumKnown[T int64 | float64](a, b *T) *T {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	both := *a + *b
	return &both
}
