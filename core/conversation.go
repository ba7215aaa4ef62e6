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
	UpdatedAt time.Time // when the latest message was added; a new title does not count

	// What its messages add up to.
	MessageCount int
	Preview      string // the beginning of the latest message that says something
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // of the calls whose price is known; nil when no price is known
}

// ConversationRef names a conversation to the one person who may see it. With another's workspace
// or owner in it, everything answers as if the conversation did not exist.
type ConversationRef struct {
	Workspace string
	Owner     string // User.ID
	ID        string
}

// Conversation names a conversation of the caller's own.
func (c Caller) Conversation(id string) ConversationRef {
	return ConversationRef{Workspace: c.Workspace.ID, Owner: c.User.ID, ID: id}
}

// ConversationPatch is a change of what is said about a conversation; nil leaves as it is.
type ConversationPatch struct {
	Title    *string
	Metadata json.RawMessage // replaces the whole of it
}

// ConversationSort is what conversations are listed by, newest first.
type ConversationSort string

// The two orders of contract part 5.
const (
	SortByUpdated ConversationSort = "updatedAt"
	SortByCreated ConversationSort = "createdAt"
)

// ConversationQuery asks for one page of a person's conversations.
type ConversationQuery struct {
	Limit  int    // 1 to 100; 0 means 20
	Cursor string // ConversationPage.NextCursor of the page before; "" for the first
	// Search keeps the conversations in whose title and messages every one of its words occurs. The
	// last word may be the beginning of one, from three characters on.
	Search string
	SortBy ConversationSort // "" means SortByUpdated
}

// ConversationPage is one page.
type ConversationPage struct {
	Conversations []Conversation
	NextCursor    string // "" when this is the last page
	TotalCount    int    // of all pages
}

// Message is one message of a conversation, in its order.
type Message struct {
	Role      string          // "user" or "assistant"
	Content   string          // what was said
	Blocks    json.RawMessage // the model's own content blocks, to go on from; not shown
	Timestamp time.Time
	Metadata  json.RawMessage // contract part 5, as it is shown; nil when absent
}
