package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// maxDescription is the maximum length of a tool description that the vendor accepts, in bytes.
const maxDescription = 1024

// request is the body of a Chat Completions request.
type request struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`            // the name that other services use
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"` // the vendor's name
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message is one message. Content is a string or a list of parts.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"` // the tool's name, in a tool message

	extra map[string]json.RawMessage // members that must be returned to the server
}

// MarshalJSON implements json.Marshaler.
func (m message) MarshalJSON() ([]byte, error) {
	type plain message
	raw, err := rawjson.Encode(plain(m))
	if err != nil || len(m.extra) == 0 {
		return raw, err
	}
	var members []rawjson.Member
	for _, name := range slices.Sorted(maps.Keys(m.extra)) {
		members = append(members, rawjson.Member{Name: name, Value: m.extra[name]})
	}
	return rawjson.Set(raw, members...)
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`

	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
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
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// contentPart is a part of a message's content.
type contentPart struct {
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

// newRequest returns a request in the form that the model accepts.
func newRequest(name string, r model.Request, d dialect) request {
	out := request{Model: name, Stream: true}
	if !d.noStreamOptions {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if !d.noEffort {
		out.ReasoningEffort = d.efforts.Of(r.Effort)
	}
	limit := r.MaxTokens
	if d.maxTokens > 0 {
		limit = min(limit, d.maxTokens)
	}
	if d.completionTokens {
		out.MaxCompletionTokens = limit
	} else {
		out.MaxTokens = limit
	}
	out.Messages = d.messages(r)
	for _, t := range r.Tools {
		description := strings.ToValidUTF8(t.Description[:min(len(t.Description), maxDescription)], "")
		out.Tools = append(out.Tools, tool{Type: "function", Function: definition{
			Name: model.SafeName(t.Name), Description: description, Parameters: d.schema(t),
		}})
	}
	if d.wantsTools && len(out.Tools) == 0 && slices.ContainsFunc(out.Messages, func(m message) bool { return len(m.ToolCalls) > 0 }) {
		out.Tools = []tool{{Type: "function", Function: definition{Name: "none", Description: "There are no tools at the moment.", Parameters: model.SafeSchema(nil)}}}
	}
	return out
}

func (d dialect) schema(t model.Tool) json.RawMessage {
	schema := model.SafeSchema(t.Schema, strings.Fields(d.keywords)...)
	if fields, _ := rawjson.Fields(schema); d.noEmptySchemas && string(fields["properties"]) == "{}" {
		return nil
	}
	return schema
}

func (d dialect) messages(r model.Request) (out []message) {
	system := strings.Join(r.System, "\n\n")
	if system != "" && !d.noSystem {
		out = append(out, message{Role: "system", Content: system})
	}
	names := map[string]string{}
	for i, m := range r.Messages {
		if system != "" && d.noSystem && i == 0 {
			m.Blocks = append([]model.Block{{Kind: model.Text, Text: system}}, m.Blocks...)
		}
		if m.Role != model.User {
			one := d.assistantMessage(m)
			for _, c := range one.ToolCalls {
				names[c.ID] = c.Function.Name
			}
			out = append(out, one)
			continue
		}
		for _, one := range d.userMessages(m) {
			if d.namedResults {
				one.Name = names[one.ToolCallID]
			}
			out = append(out, one)
		}
	}
	return out
}

// userMessages converts a user message into one tool message per tool result and one user message for the rest.
// Images of results go into the user message, because most servers accept only text in a tool message.
func (d dialect) userMessages(m model.Message) (out []message) {
	var texts []string
	var parts []contentPart
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Text, model.Summary:
			texts = append(texts, b.Text)
		case model.File:
			parts = append(parts, d.filePart(b))
		case model.ToolResult:
			text := b.Text
			if d.noImages && len(b.Files) > 0 {
				text = strings.TrimLeft(text+"\n\n[The images of this result were left out: this model cannot see images.]", "\n")
			}
			result := message{Role: "tool", Content: json.RawMessage(quoted(text)), ToolCallID: d.id(b.ID)}
			images := d.imagesOf(b)
			if d.filesInTools && len(images) > 0 {
				result.Content = append([]contentPart{{Type: "text", Text: b.Text}}, images...)
			} else if len(images) > 0 {
				parts = append(append(parts, contentPart{Type: "text", Text: "The images of the result of the tool call " + b.ID + ":"}), images...)
			}
			out = append(out, result)
		case model.ToolUse, model.Reasoning, model.Opaque: // not in a user message
		}
	}
	text := strings.Join(texts, "\n\n")
	if d.bridged && len(out) > 0 && (len(parts) > 0 || text != "") {
		out = append(out, message{Role: "assistant", Content: "Understood."})
	}
	switch {
	case len(parts) > 0:
		if text != "" {
			parts = append(parts, contentPart{Type: "text", Text: text})
		}
		return append(out, message{Role: "user", Content: parts})
	case text != "":
		return append(out, message{Role: "user", Content: text})
	}
	return out
}

func (d dialect) imagesOf(b model.Block) (images []contentPart) {
	for _, f := range b.Files {
		if !d.noImages {
			images = append(images, d.filePart(f))
		}
	}
	return images
}

// assistantMessage converts an assistant message. If parts of its content must be sent back, the content becomes a
// list.
func (d dialect) assistantMessage(m model.Message) message {
	out := message{Role: "assistant"}
	var texts []string
	var list []any
	listed := false
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Text:
			texts = append(texts, b.Text)
			list = append(list, contentPart{Type: "text", Text: b.Text})
		case model.Reasoning, model.Opaque:
			back := returnedOf(b)
			if len(back.Part) > 0 {
				list, listed = append(list, back.Part), true
			}
			if d.noReasoning {
				back.Message = nil
			}
			for name, value := range back.Message {
				if out.extra == nil {
					out.extra = map[string]json.RawMessage{}
				}
				out.extra[name] = merge(out.extra[name], value)
			}
		case model.ToolUse:
			out.ToolCalls = append(out.ToolCalls, toolCall{ID: d.id(b.ID), Type: "function", ExtraContent: b.Raw, Function: function{
				Name: model.SafeName(b.Name), Arguments: string(model.Object(b.Input)),
			}})
		case model.ToolResult, model.File, model.Summary: // not in an assistant message
		}
	}
	switch text := strings.Join(texts, "\n\n"); {
	case listed:
		out.Content = list
	case text != "":
		out.Content = text
	case d.noNull:
		out.Content = ""
	default: // some servers reject a message without the member
		out.Content = json.RawMessage("null")
	}
	d.complete(&out)
	return out
}

func (d dialect) id(id string) string {
	if d.shortIDs {
		return model.SafeID(id)
	}
	return id
}

// complete adds the members that the server requires with tool calls, including other models' calls.
func (d dialect) complete(m *message) {
	if len(m.ToolCalls) == 0 {
		return
	}
	if d.reasoning != "" && !d.noReasoning && m.extra["reasoning_content"] == nil {
		if m.extra == nil {
			m.extra = map[string]json.RawMessage{}
		}
		m.extra["reasoning_content"] = json.RawMessage(d.reasoning)
	}
	if d.wantsSignature && m.ToolCalls[0].ExtraContent == nil { // https://ai.google.dev/gemini-api/docs/thought-signatures
		m.ToolCalls[0].ExtraContent = json.RawMessage(`{"google":{"thought_signature":"skip_thought_signature_validator"}}`)
	}
}

// quoted returns a JSON string. A tool message needs content even if that is empty.
func quoted(text string) string {
	raw, _ := rawjson.Encode(text) // cannot fail for a string
	return string(raw)
}

func (d dialect) filePart(b model.Block) contentPart {
	data := b.URL
	if data == "" {
		data = "data:" + b.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
	}
	switch {
	case b.IsText():
		return contentPart{Type: "text", Text: b.FileText()}
	case b.IsImage() && d.noImages:
		return contentPart{Type: "text", Text: "[The image " + b.Name + " was left out: this model cannot see images.]"}
	case b.IsImage() && d.noImageURLs && b.URL != "":
		return contentPart{Type: "text", Text: "[The image " + b.Name + " was left out: this model cannot load it from its address.]"}
	case b.IsImage():
		return contentPart{Type: "image_url", ImageURL: &imageURL{URL: data}}
	case d.noFiles:
		return contentPart{Type: "text", Text: "[The file " + b.Name + " (" + b.MIMEType + ") was left out: this model cannot read it.]"}
	default:
		return contentPart{Type: "file", File: &file{Name: b.Name, Data: data}}
	}
}
