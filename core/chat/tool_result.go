package chat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

const (
	failureLimit = 50_000   // characters of an app's error that a model receives
	imageBytes   = 32 << 20 // bytes per image; larger images of a result are ignored
)

// content is one content block of a tool result.
type content struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	MIMEType    string `json:"mimeType"`
	Data        string `json:"data"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Resource    struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// toolResult is an MCP CallToolResult.
type toolResult struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	IsError           bool              `json:"isError"`
}

// contents returns the content blocks. Members with an unexpected type are ignored.
func (r toolResult) contents() []content {
	all := make([]content, len(r.Content))
	for i, raw := range r.Content {
		_ = json.Unmarshal(raw, &all[i]) // use what can be decoded
	}
	return all
}

// textOfResult renders a CallToolResult as text for a model, and reports whether the tool succeeded. Images are
// described, for models that cannot see them. Structured content follows, unless one of the text parts is the same
// JSON.
func textOfResult(raw json.RawMessage) (text string, ok bool) {
	var result toolResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return "The tool's answer is not a valid tool result.", false
	}
	var parts []string
	structured := compacted(result.StructuredContent)
	for _, c := range result.contents() {
		part := c.text()
		if part != "" {
			parts = append(parts, part)
		}
		if structured != "" && c.Type == "text" && sameJSON(part, structured) {
			structured = ""
		}
	}
	if structured != "" && structured != "null" {
		parts = append(parts, structured)
	}
	text = strings.Join(parts, "\n")
	if result.IsError && strings.TrimSpace(text) == "" { // Anthropic rejects an error without text
		text = "The tool failed and gave no reason."
	}
	return text, !result.IsError
}

// isPlain reports whether a result contains only text.
func isPlain(raw json.RawMessage) bool {
	var result toolResult
	_ = json.Unmarshal(raw, &result) // ignore members with an unexpected type
	return !slices.ContainsFunc(result.contents(), func(c content) bool { return c.Type != "text" })
}

func compacted(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}

// sameJSON reports whether text is the same JSON value, regardless of the order of members.
func sameJSON(text, compact string) bool {
	var a, b any
	for from, to := range map[string]*any{text: &a, compact: &b} {
		d := json.NewDecoder(strings.NewReader(from))
		d.UseNumber()
		if d.Decode(to) != nil {
			return false
		}
	}
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// imagesOfResult returns the images of a CallToolResult that every provider supports. The type is detected from the
// bytes. imageScaler.fit decides which of them a model receives.
func imagesOfResult(raw json.RawMessage) (images []model.Block) {
	var result toolResult
	if len(raw) == 0 || json.Unmarshal(raw, &result) != nil {
		return nil
	}
	for _, c := range result.contents() {
		data, name := c.Data, c.Name
		if c.Type == "resource" {
			data, name = c.Resource.Blob, c.Resource.URI
		} else if c.Type != "image" {
			continue
		}
		if base64.StdEncoding.DecodedLen(len(data)) > imageBytes+2 {
			continue
		}
		image, err := base64.StdEncoding.DecodeString(data)
		media := http.DetectContentType(image)
		if err == nil && isForModels(media) {
			images = append(images, model.Block{Kind: model.File, Name: name, MIMEType: media, Data: image})
		}
	}
	return images
}

// isForModels reports whether the models of every provider support images of a type.
func isForModels(media string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media)
}

func (c content) text() string {
	switch c.Type {
	case "text":
		return c.Text
	case "image", "audio":
		return fmt.Sprintf("[%s, %s, %d bytes]", c.Type, c.MIMEType, len(c.Data)/4*3)
	case "resource_link":
		return c.link()
	case "resource":
		return c.embedded()
	}
	return ""
}

// link renders a resource link with everything that describes it.
func (c content) link() string {
	text := strings.TrimSpace(fmt.Sprintf("[resource %s %s", c.URI, c.Name))
	if c.Title != "" {
		text += fmt.Sprintf(" %q", c.Title)
	}
	if c.MIMEType != "" {
		text += " (" + c.MIMEType + ")"
	}
	text += "]"
	if c.Description != "" {
		text += " " + c.Description
	}
	return text
}

// embedded renders an embedded resource: its text, even if that is in a blob.
func (c content) embedded() string {
	r := c.Resource
	if r.Text != "" {
		return r.Text
	}
	if r.Blob == "" {
		return fmt.Sprintf("[resource %s]", r.URI)
	}
	blob, err := base64.StdEncoding.DecodeString(r.Blob)
	if err == nil && (model.Block{MIMEType: r.MIMEType}).IsText() && utf8.Valid(blob) {
		return string(blob)
	}
	return fmt.Sprintf("[resource %s, %s, %d bytes]", r.URI, r.MIMEType, len(r.Blob)/4*3)
}

// truncate shortens text that is too long, and adds a note.
func truncate(text string) string {
	if len(text) <= failureLimit {
		return text
	}
	total := utf8.RuneCountInString(text)
	if total <= failureLimit {
		return text
	}
	at, n := 0, 0
	for at = range text {
		if n == failureLimit {
			break
		}
		n++
	}
	return fmt.Sprintf("%s\n\n[The message was truncated: these are the first %d of %d characters.]", text[:at], failureLimit, total)
}
