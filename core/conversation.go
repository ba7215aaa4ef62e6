package core

import (
	"encoding/json"
	"time"
)

// Conversation is one user's conversation with a model in one workspace. For everyone but its owner it
// does not exist.
type Conversation struct {
	ID        string // conv_ and 16 hexadecimal digits
	Workspace string
	Owner     string // User.ID
	Title     string // "" until there is one
	Metadata  json.RawMessage
	LastModel string
	CreatedAt time.Time
	UpdatedAt time.Time // when the latest message was added; a new title does not count

	// Sums over its messages.
	MessageCount int
	Preview      string // the beginning of the latest message with text
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // of the calls whose price is known; nil when no price is known
}

// ConversationRef identifies a conversation together with its workspace and owner. With a wrong
// workspace or owner the conversation is not found.
type ConversationRef struct {
	Workspace string
	Owner     string // User.ID
	ID        string
}

// Conversation refers to a conversation of the caller.
func (c Caller) Conversation(id string) ConversationRef {
	return ConversationRef{Workspace: c.Workspace.ID, Owner: c.User.ID, ID: id}
}

// ConversationPatch changes a conversation; nil fields are left unchanged.
type ConversationPatch struct {
	Title    *string
	Metadata json.RawMessage // replaces the whole of it
	// OnlyUntitled leaves a conversation unchanged that has a title already.
	OnlyUntitled bool
}

// ConversationSort is the order of a list of conversations, newest first.
type ConversationSort string

// The orders of a list.
const (
	SortByUpdated ConversationSort = "updatedAt"
	SortByCreated ConversationSort = "createdAt"
)

// ConversationQuery selects one page of a user's conversations.
type ConversationQuery struct {
	Limit  int    // 1 to 100; 0 means 20
	Cursor string // ConversationPage.NextCursor of the page before; "" for the first
	// Search selects conversations whose title and messages contain all its words. The last word
	// matches as a prefix, from three characters on.
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
	Content   string          // the text
	Blocks    json.RawMessage // the model's own content blocks, to go on from; not shown
	Timestamp time.Time
	Metadata  json.RawMessage // as the API shows it; nil when absent
	// Continues reports that it is a further part of the message before it: the turns of one run are
	// stored one by one, and are one message. What counts messages does not count it.
	Continues bool
	// Unfinished is set in what is read of a turn that has not ended. Claimed says that a run goes on in its conversation,
	// through any server that has a claim in the database.
	Unfinished, Claimed bool
	// Queued is, in a message that is appended, the id of the QueuedMessage that it was until now.
	Queued string
	// Attachments are stored with a message that is appended. Messages that are read have none.
	Attachments []Attachment
}

// QueuedMessage waits for the end of the run of its conversation.
type QueuedMessage struct {
	ID      string // que_ and 16 hexadecimal digits
	Message Message
}

// Attachment is a file that a person attached to a message.
type Attachment struct {
	ID       string // att_ and 16 hexadecimal digits
	Name     string
	MIMEType string
	Content  []byte
}

// Question is an elicitation: an app asks the user whose run called it. Only that user may answer.
type Question struct {
	ID        string // elic_ and 16 hexadecimal digits
	Workspace string
	Owner     string          // User.ID
	Schema    json.RawMessage // of the form; nil when the person is sent to an address
	Until     time.Time       // it counts as declined after that
}
