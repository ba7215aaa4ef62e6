package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// block is a content block of a request. Its type determines which members it has.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Source       *source         `json:"source,omitempty"`      // for image and document
	Title        string          `json:"title,omitempty"`       // for document
	ID           string          `json:"id,omitempty"`          // for tool_use
	Name         string          `json:"name,omitempty"`        // for tool_use
	Input        json.RawMessage `json:"input,omitempty"`       // for tool_use
	ToolUseID    string          `json:"tool_use_id,omitempty"` // for tool_result
	Content      []*block        `json:"content,omitempty"`     // for tool_result
	IsError      bool            `json:"is_error,omitempty"`    // for tool_result
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// source is the content of a file or its URL.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

func text(t string) *block { return &block{Type: "text", Text: t} }

func newBlock(b model.Block) *block {
	switch b.Kind {
	case model.ToolUse:
		return &block{Type: "tool_use", ID: b.ID, Name: model.SafeName(b.Name), Input: model.Object(b.Input)}
	case model.File:
		return newFile(b)
	case model.ToolResult:
		// The vendor rejects an error with content other than text, and blank text.
		result := &block{Type: "tool_result", ToolUseID: b.ID, IsError: b.Error && len(b.Files) == 0}
		if strings.TrimSpace(b.Text) != "" {
			result.Content = []*block{text(b.Text)}
		}
		for _, f := range b.Files {
			result.Content = append(result.Content, newFile(f))
		}
		return result
	default:
		return text(b.Text)
	}
}

func newFile(b model.Block) *block {
	if b.IsText() {
		return text(b.FileText())
	}
	file := &block{Type: "document", Title: b.Name, Source: &source{Type: "base64", MediaType: "application/pdf", Data: b.Data}}
	if b.IsImage() {
		file.Type, file.Title, file.Source.MediaType = "image", "", b.MIMEType
	}
	if b.URL != "" {
		file.Source = &source{Type: "url", URL: b.URL}
	}
	return file
}
