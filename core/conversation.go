package core

import (
	"encoding/json"
	"time"
)

// Conversation is one user's conversation with a model in one workspace. To everyone but its owner, it
// does not exist.
type Conversation struct {
	ID        string // conv_ and 16 hexadecimal digits
	Workspace string
	Owner     string // User.ID
	Title     string // "" until there is one
	Metadata  json.RawMessage
	LastModel string
	// DisabledApps contains the server names of the apps whose tools are not offered to the model.
	DisabledApps []string
	CreatedAt    time.Time
	UpdatedAt    time.Time // when the latest message was added; a new title does not count

	// Derived from its messages.
	MessageCount int
	Preview      string // the start of the latest message that has text
	InputTokens  int64
	OutputTokens int64
	CostUSD      *float64 // the cost of the calls with a known price; nil if no price is known

	Passage string // where the messages contain a search term, in a list; "" if only the title does
}

// ConversationRef identifies a conversation together with its workspace and owner. If the
// workspace or owner is wrong, the conversation is not found.
type ConversationRef struct {
	Workspace string
	Owner     string // User.ID
	ID        string
}

// Conversation returns a reference to one of the caller's conversations.
func (c Caller) Conversation(id string) ConversationRef {
	return ConversationRef{Workspace: c.Workspace.ID, Owner: c.User.ID, ID: id}
}

// ConversationPatch changes a conversation; nil fields are left unchanged.
type ConversationPatch struct {
	Title    *string
	Metadata json.RawMessage // replaces the existing metadata as a whole
	// DisabledApps replaces the existing list; an empty list enables all apps.
	DisabledApps []string
	// OnlyUntitled leaves the conversation unchanged if it already has a title.
	OnlyUntitled bool
}

// RefusedTool is a tool that a model's provider rejects. Chats with that model leave it out.
type RefusedTool struct {
	Name   string `json:"name"`             // the tool's own name
	Model  string `json:"model"`            // provider:model
	Reason string `json:"reason,omitempty"` // in the provider's words
}

// ToolVerdict is a model's verdict on the definitions of a set of tools.
type ToolVerdict struct {
	Origin string // the model's provider, name and address
	Hash   string // the hash of the definitions
	Model  string // provider:model
	Reason string // why the only tool of the set was refused; "" if the set was accepted
	At     time.Time
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
	Cursor string // ConversationPage.NextCursor of the previous page; "" for the first page
	// Search selects conversations whose title and messages together contain all its words. The last word
	// matches as a prefix if it has at least three characters.
	Search string
	SortBy ConversationSort // "" means SortByUpdated
}

// ConversationPage is one page of a user's conversations.
type ConversationPage struct {
	Conversations []Conversation
	NextCursor    string // "" on the last page
	TotalCount    int    // total of all pages
}

// Message is one message of a conversation.
type Message struct {
	Role      string          // "user" or "assistant"
	Content   string          // the text
	Blocks    json.RawMessage // the model's own content blocks, needed to continue the conversation; not shown
	Timestamp time.Time
	Metadata  json.RawMessage // as the API shows it; nil if absent
	// Continues reports that this is another part of the previous message: the turns of one run are stored one by one
	// but form one message. It is not counted as a message.
	Continues bool
	// Unfinished is set in a message that was read before its turn ended. Claimed reports that a run is in progress in the
	// conversation, on any server that has a claim in the database.
	Unfinished, Claimed bool
	// Queued is the id of the QueuedMessage that the message replaces when it is appended.
	Queued string
	// Attachments are stored when a message is appended. Messages that are read have none.
	Attachments []Attachment
}

// QueuedMessage is a message that waits until its conversation's current run ends.
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

// Question is an elicitation: an app that was called in a run asks the user of that run. Only that user may answer.
type Question struct {
	ID        string // elic_ and 16 hexadecimal digits
	Workspace string
	Owner     string          // User.ID
	Schema    json.RawMessage // the form's schema; nil in URL mode
	Until     time.Time       // when the question is treated as declined
}
