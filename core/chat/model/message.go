package model

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// Role is the author of a message. Tool results are in messages of the user.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Kind is the kind of a block.
type Kind string

// The kinds of blocks.
const (
	Text       Kind = "text"
	ToolUse    Kind = "tool_use"
	ToolResult Kind = "tool_result"
	File       Kind = "file"      // an image, document or text file that the user attached
	Reasoning  Kind = "reasoning" // the model's reasoning; Text is the part that a person may read
	Opaque     Kind = "opaque"    // a part that only the provider understands
	Summary    Kind = "summary"   // replaces the earlier messages for models
)

// Block is a part of a message. Its JSON is stored with conversations.
type Block struct {
	Kind  Kind            `json:"type"`
	Text  string          `json:"text,omitempty"`  // for Text; for ToolResult, the tool's output
	ID    string          `json:"id,omitempty"`    // for ToolUse and its ToolResult; for File, the attachment's ID
	Name  string          `json:"name,omitempty"`  // for ToolUse, the tool's full name; for File, the file's name
	Input json.RawMessage `json:"input,omitempty"` // for ToolUse, a JSON object
	Error bool            `json:"error,omitempty"` // for ToolResult
	Ms    int64           `json:"ms,omitempty"`    // for Reasoning: how long it took
	Kept  int             `json:"kept,omitempty"`  // for Summary: how many of the messages before it are kept

	// Raw is data that must be returned to the provider with the block, byte for byte. It is only sent back to Origin and never
	// used as text.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Origin identifies the model that produced an assistant's block; see Origin and ForModel.
	Origin string `json:"origin,omitempty"`
	// Files are the images of a ToolResult. They are stored with the result of the call.
	Files []Block `json:"-"`

	// For File: the type, and either the content or the address.
	MIMEType string `json:"mimeType,omitempty"`
	URL      string `json:"url,omitempty"`
	Data     []byte `json:"-"` // stored with the attachments
}

// Message is one message of a conversation as a model sees it.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// TextMessage returns a message with a single text.
func TextMessage(by Role, text string) Message {
	return Message{Role: by, Blocks: []Block{{Kind: Text, Text: text}}}
}

// Tool is a tool that is offered to a model.
type Tool struct {
	Name        string // the full name; providers send SafeName(Name)
	Description string
	Schema      json.RawMessage // any JSON Schema; providers send SafeSchema(Schema)
}

// Request is one model call.
type Request struct {
	System    []string // the parts of the system prompt, the most stable first
	Messages  []Message
	Tools     []Tool
	MaxTokens int    // maximum length of the answer
	Effort    string // reasoning effort, one of Efforts; "" leaves it to the provider
}

// Efforts returns the reasoning efforts that a request may name. If a model does not support an effort, it is called
// without it.
func Efforts() []string {
	return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
}

// End is why a model ended its answer.
type End string

// The ends. Any other reason that a provider gives is EndUnknown.
const (
	EndTurn    End = ""               // the answer is complete
	EndLength  End = "length"         // MaxTokens was reached
	EndWindow  End = "context_window" // the model's context is full
	EndFilter  End = "content_filter" // the provider withheld the rest
	EndRefusal End = "refusal"        // the model refused to answer
	EndPause   End = "pause"          // the model continues once it receives its answer back
	EndNoCalls End = "no_tool_calls"  // the model announced tool calls but made none
	EndUnknown End = "unknown"
)

// Pieces receives an answer as it arrives. Nil functions are not called.
type Pieces struct {
	Text     func(text string)
	Thought  func(text string)        // a piece of Reasoning
	Thinking func(took time.Duration) // a stretch of Reasoning ended
}

// Usage is the number of tokens that one call used. Input does not include tokens read from or written to a cache.
type Usage struct {
	Input, Output         int64
	CacheRead, CacheWrite int64
}

// Answer is a model's answer.
type Answer struct {
	Blocks  []Block // the assistant's; tool names are in the form from SafeName
	Usage   Usage
	End     End
	Word    string // for EndUnknown: the provider's own reason
	CutCall bool   // a tool call was cut off and is not in Blocks
}

// Text returns the text of all Text blocks.
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
	// Call calls the named model once. It passes the pieces of the answer to pieces as they arrive. If it fails, it
	// still returns the answer so far. The error is an *Error unless ctx ended.
	Call(ctx context.Context, name string, r Request, pieces Pieces) (Answer, error)
	// Window returns the context size of the named model, in tokens, from the provider's list of models. It returns 0
	// if the size is unknown.
	Window(ctx context.Context, name string) int
}

// Settings configures a provider.
type Settings struct {
	BaseURL string // may have a query; "" means the vendor's own
	APIKey  string // "" sends no key
	Idle    time.Duration
	Proxy   func(*url.URL) (*url.URL, error) // the proxy for an https address; nil connects directly
}

// Endpoint splits BaseURL, or the vendor's own if it is "", at the query. Paths go between the two parts. query
// starts with a question mark, as in Azure's ?api-version=...; "" if there is none.
func (s Settings) Endpoint(own string) (base, query string) {
	base, query, _ = strings.Cut(cmp.Or(s.BaseURL, own), "?")
	if query != "" {
		query = "?" + query
	}
	return strings.TrimRight(base, "/"), query
}
