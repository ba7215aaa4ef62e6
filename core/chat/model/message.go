package model

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"
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
	File       Kind = "file"      // an image, a document or a text that the user attached
	Reasoning  Kind = "reasoning" // what the model thought before it went on; Text is what a person may read of it
	Opaque     Kind = "opaque"    // a part that only the provider understands
	Summary    Kind = "summary"   // of the messages before it, which models get instead of them
)

// Block is a part of a message. Its JSON is kept with conversations.
type Block struct {
	Kind  Kind            `json:"type"`
	Text  string          `json:"text,omitempty"`  // of Text; of ToolResult what the tool answered
	ID    string          `json:"id,omitempty"`    // of ToolUse, and of the ToolResult that answers it; of File the attachment's
	Name  string          `json:"name,omitempty"`  // of ToolUse: the tool's full name; of File the file's
	Input json.RawMessage `json:"input,omitempty"` // of ToolUse: a JSON object
	Error bool            `json:"error,omitempty"` // of ToolResult
	Ms    int64           `json:"ms,omitempty"`    // of Reasoning: how long it took
	Kept  int             `json:"kept,omitempty"`  // of Summary: how many of the messages before it models get as well

	// Raw is what the provider wants back with the block, byte for byte. It goes back to Origin only, and is never text.
	Raw json.RawMessage `json:"raw,omitempty"`
	// Origin is the model that made an assistant's block: provider, model and endpoint; see ForModel.
	Origin string `json:"origin,omitempty"`
	// Files are the images of a ToolResult. They are stored with the result of the call.
	Files []Block `json:"-"`

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
	MaxTokens int    // what the answer may have at most
	Effort    string // how much the model thinks, one of Efforts; "" leaves it to the provider
}

// Efforts are the efforts that a request may name. A model that does not know one is asked without it.
func Efforts() []string {
	return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
}

// End is why a model ended its answer.
type End string

// The ends. A provider's word that is none of them is EndUnknown.
const (
	EndTurn    End = ""               // it has said what it wanted to
	EndLength  End = "length"         // MaxTokens
	EndWindow  End = "context_window" // the model's context is full
	EndFilter  End = "content_filter" // the provider withheld the rest
	EndRefusal End = "refusal"        // the model refuses
	EndPause   End = "pause"          // it goes on when it gets its answer back
	EndNoCalls End = "no_tool_calls"  // it announced tool calls, and made none
	EndUnknown End = "unknown"
)

// Pieces takes an answer as it arrives. A nil function takes nothing.
type Pieces struct {
	Text     func(text string)
	Thought  func(text string)        // a piece of Reasoning
	Thinking func(took time.Duration) // a stretch of Reasoning ended
}

// Usage is the tokens of one call. Input does not count what was read from or written to a cache.
type Usage struct {
	Input, Output         int64
	CacheRead, CacheWrite int64
}

// Answer is what a model said.
type Answer struct {
	Blocks  []Block // of an assistant; the names of tools as SafeName wrote them
	Usage   Usage
	End     End
	Word    string // the provider's own, of EndUnknown
	CutCall bool   // the input of a call was cut off, so the call is not among Blocks
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
	// Call calls the named model once. It gives each piece of the answer to pieces as it arrives, and
	// returns what was said until then also with an error, which is an *Error unless ctx ended.
	Call(ctx context.Context, name string, r Request, pieces Pieces) (Answer, error)
	// Window asks the provider's list how many tokens the context of the named model holds; 0 when it does not say.
	Window(ctx context.Context, name string) int
}

// Settings is what a provider is made of.
type Settings struct {
	BaseURL string // without a trailing slash, perhaps with a query; "" is the vendor's own
	APIKey  string // "" sends none
	Idle    time.Duration
	Proxy   func(*url.URL) (*url.URL, error) // of an https address; nil reaches it directly
}

// Endpoint is BaseURL, or else the vendor's own, in two: paths go between them. The second is the query with its
// question mark, such as Azure's api-version.
func (s Settings) Endpoint(own string) (base, query string) {
	base, query, _ = strings.Cut(cmp.Or(s.BaseURL, own), "?")
	if query != "" {
		query = "?" + query
	}
	return strings.TrimRight(base, "/"), query
}
