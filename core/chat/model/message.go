package model

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Role is who says a message. What tools answered is said by the user.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Kind is what a block holds.
type Kind string

// The kinds of blocks.
const (
	Text       Kind = "text"
	ToolUse    Kind = "tool_use"
	ToolResult Kind = "tool_result"
	File       Kind = "file" // an image, a document or a text that the user attached
)

// Block is a part of a message. Its JSON is kept with conversations.
type Block struct {
	Kind  Kind            `json:"type"`
	Text  string          `json:"text,omitempty"`  // of Text; of ToolResult what the tool answered
	ID    string          `json:"id,omitempty"`    // of ToolUse, and of the ToolResult that answers it; of File the attachment's
	Name  string          `json:"name,omitempty"`  // of ToolUse: the tool's full name; of File the file's
	Input json.RawMessage `json:"input,omitempty"` // of ToolUse: a JSON object
	Error bool            `json:"error,omitempty"` // of ToolResult

	// Of File: its type, and its content or its address.
	MIMEType string `json:"mimeType,omitempty"`
	URL      string `json:"url,omitempty"`
	Data     []byte `json:"-"` // it is stored with the attachments
}

// Message is one message of a conversation as a model sees it.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Said is a message of one text.
func Said(by Role, text string) Message {
	return Message{Role: by, Blocks: []Block{{Kind: Text, Text: text}}}
}

// Tool is a tool as it is offered to a model.
type Tool struct {
	Name        string // the full name; providers write it as SafeName does
	Description string
	Schema      json.RawMessage // any JSON Schema; providers write it as SafeSchema does
}

// Request is one call of a model.
type Request struct {
	System    []string // the parts of the system prompt, the ones that change least first
	Messages  []Message
	Tools     []Tool
	MaxTokens int // what the answer may have at most
}

// Usage is the tokens of one call. Input does not count what was read from or written to a cache.
type Usage struct {
	Input, Output         int64
	CacheRead, CacheWrite int64
}

// Answer is what a model said.
type Answer struct {
	Blocks []Block // Text and ToolUse; the names as SafeName wrote them
	Usage  Usage
	Cut    bool // it ended because of MaxTokens
}

// Text is all that was said in words.
func (a Answer) Text() string {
	text := ""
	for _, b := range a.Blocks {
		if b.Kind == Text {
			text += b.Text
		}
	}
	return text
}

// Provider calls the models of one vendor.
type Provider interface {
	// Call calls the named model once. It gives each piece of text to said as it arrives, and
	// returns what was said until then also with an error, which is an *Error unless ctx ended.
	Call(ctx context.Context, name string, r Request, said func(text string)) (Answer, error)
}

// Settings is what a provider is made of.
type Settings struct {
	BaseURL string // without a trailing slash; "" is the vendor's own
	APIKey  string // "" sends none
	Idle    time.Duration
	Proxy   func(*url.URL) (*url.URL, error) // of an https address; nil reaches it directly
}
