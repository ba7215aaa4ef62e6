package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// resultLimit is how many characters of a tool's result a model receives.
const resultLimit = 50_000

// content is one block of a tool's result.
type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// textOfResult is what a model receives of a CallToolResult, and whether the tool succeeded. Content that
// is not text is described; structured content replaces a missing text.
func textOfResult(raw json.RawMessage) (text string, ok bool) {
	var result struct {
		Content           []content       `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "The tool's answer is not a valid tool result.", false
	}
	var parts []string
	for _, c := range result.Content {
		if part := c.text(); part != "" {
			parts = append(parts, part)
		}
	}
	text = strings.Join(parts, "\n")
	if text == "" && len(result.StructuredContent) > 0 && string(result.StructuredContent) != "null" {
		text = string(result.StructuredContent)
	}
	return truncate(text), !result.IsError
}

func (c content) text() string {
	switch c.Type {
	case "text":
		return c.Text
	case "image", "audio":
		return fmt.Sprintf("[%s, %s, %d bytes]", c.Type, c.MIMEType, len(c.Data)/4*3)
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[resource %s %s]", c.URI, c.Name))
	case "resource":
		if c.Resource.Text != "" {
			return c.Resource.Text
		}
		return fmt.Sprintf("[resource %s]", c.Resource.URI)
	}
	return ""
}

// truncate shortens a text that is too long, and adds a note.
func truncate(text string) string {
	if len(text) <= resultLimit {
		return text
	}
	total := utf8.RuneCountInString(text)
	if total <= resultLimit {
		return text
	}
	at, n := 0, 0
	for at = range text {
		if n == resultLimit {
			break
		}
		n++
	}
	return fmt.Sprintf("%s\n\n[The result was truncated: these are the first %d of %d characters.]", text[:at], resultLimit, total)
}
