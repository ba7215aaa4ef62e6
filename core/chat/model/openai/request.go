package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// maxDescription is the length of a tool's description that the vendor accepts, bytes.
const maxDescription = 1024

// request is the body of a Chat Completions request.
type request struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`            // the name that other services know
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"` // the vendor's name
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message is one message. Content is a string, or a list of parts.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type     string     `json:"type"`
	Function definition `json:"function"`
}

type definition struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
}

// part is a part of a user's message.
type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
	File     *file     `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type file struct {
	Name string `json:"filename,omitempty"`
	Data string `json:"file_data"`
}

// newRequest writes a request in the vendor's form.
func (p *Provider) newRequest(name string, r model.Request) request {
	out := request{Model: name, Stream: true, StreamOptions: &streamOptions{IncludeUsage: true}}
	if p.own {
		out.MaxCompletionTokens = r.MaxTokens
	} else {
		out.MaxTokens = r.MaxTokens
	}
	if len(r.System) > 0 {
		out.Messages = append(out.Messages, message{Role: "system", Content: strings.Join(r.System, "\n\n")})
	}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, messagesOf(m)...)
	}
	for _, t := range r.Tools {
		description := strings.ToValidUTF8(t.Description[:min(len(t.Description), maxDescription)], "")
		out.Tools = append(out.Tools, tool{Type: "function", Function: definition{
			Name: model.SafeName(t.Name), Description: description, Parameters: model.SafeSchema(t.Schema),
		}})
	}
	return out
}

// messagesOf writes one message as the vendor's, which has one for each tool result.
func messagesOf(m model.Message) (out []message) {
	var texts []string
	var files []part
	var calls []toolCall
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Text:
			texts = append(texts, b.Text)
		case model.File:
			files = append(files, filePart(b))
		case model.ToolUse:
			calls = append(calls, toolCall{ID: b.ID, Type: "function", Function: function{
				Name: model.SafeName(b.Name), Arguments: string(model.Object(b.Input)),
			}})
		case model.ToolResult:
			out = append(out, message{Role: "tool", Content: json.RawMessage(quoted(b.Text)), ToolCallID: b.ID})
		}
	}
	text := strings.Join(texts, "\n\n")
	if m.Role != model.User {
		return append(out, withText(message{Role: "assistant", ToolCalls: calls}, text))
	}
	switch {
	case len(files) > 0:
		if text != "" {
			files = append(files, part{Type: "text", Text: text})
		}
		return append(out, message{Role: "user", Content: files})
	case text != "":
		return append(out, message{Role: "user", Content: text})
	}
	return out
}

func withText(m message, text string) message {
	if text != "" {
		m.Content = text
	}
	return m
}

// quoted is a string as JSON: a tool result has content even when it is empty.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // strings always marshal
	return string(raw)
}

func filePart(b model.Block) part {
	data := b.URL
	if data == "" {
		data = "data:" + b.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
	}
	switch {
	case b.IsText():
		return part{Type: "text", Text: b.FileText()}
	case b.IsImage():
		return part{Type: "image_url", ImageURL: &imageURL{URL: data}}
	default:
		return part{Type: "file", File: &file{Name: b.Name, Data: data}}
	}
}
