package core

import (
	"encoding/json"
	"time"
)

// Conversation is one person's talk with a model in one workspace (contract part 5). It is its
// owner's: to anyone else it does not exist.
type Conversation struct {
	ID        string // conv_ and 16 hexadecimal digits
	Workspace string
	Owner     string // User.ID
	Title     string // "" until there is one
	Metadata  json.RawMessage
	LastModel string
	CreatedAt time.Time
	UpdatedAt time.Time

	// What its messages add up to.
	MessageCount int
	Preview      string // the beginning of the latest message
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // nil when no price is known
}

// Message is one message of a conversation, in its order.
type Message struct {
	Role      string          // "user" or "assistant"
	Content   string          // what was said
	Blocks    json.RawMessage // the model's own content blocks, to go on from; not shown
	Timestamp time.Time
	Metadata  json.RawMessage // contract part 5, as it is shown; nil when absent
}

// Usage is what one call of a model used.
type Usage struct {
	Workspace        string
	User             string // User.ID
	Conversation     string
	Model            string // provider:model
	At               time.Time
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  int64
	CacheWriteTokens int64
	CostUSD          *float64 // nil when no price is known
	LLM              time.Duration
	ToolCalls        int // calls of tools that the model's answer asked for
}
