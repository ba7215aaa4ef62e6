package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// resultLimit is how many characters of a tool's result a model gets (contract part 4).
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

// readable is what a model gets of a CallToolResult, and whether the tool succeeded. What is no
// text is named; structured content stands in for a result without text.
func readable(raw json.RawMessage) (text string, ok bool) {
	var result struct {
		Content           []content       `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "The tool's answer is not a tool result.", false
	}
	var parts []string
	for _, c := range result.Content {
		if part := c.readable(); part != "" {
			parts = append(parts, part)
		}
	}
	text = strings.Join(parts, "\n")
	if text == "" && len(result.StructuredContent) > 0 && string(result.StructuredContent) != "null" {
		text = string(result.StructuredContent)
	}
	return cut(text), !result.IsError
}

func (c content) readable() string {
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

// cut keeps the beginning of a text that is too long, and says that it did.
func cut(text string) string {
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
	return fmt.Sprintf("%s\n\n[The result was cut: this is the first %d of %d characters.]", text[:at], resultLimit, total)
}
