package part

import "strings"

// Separator is between the texts of two turns.
const Separator = "\n\n"

// The types of a Part.
const (
	Text     = "text"
	ToolCall = "toolCall"
)

// Part is one part of an assistant message: a text, or a tool call by its place in the message's tool calls.
// The parts of a message are in the order in which they were streamed.
type Part struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`  // of a text
	Index *int64 `json:"index,omitempty"` // of a tool call, from 0
}

// OfTurns returns the parts of a message: what the model says in a turn comes before the calls of that
// turn. calls is the number of calls of each turn.
func OfTurns(texts []string, calls []int) (parts []Part) {
	next := int64(0)
	for i, text := range texts {
		if text != "" {
			parts = appendText(parts, text)
		}
		for range calls[i] {
			index := next
			parts = append(parts, Part{Type: ToolCall, Index: &index})
			next++
		}
	}
	return parts
}

// appendText appends a text, or adds it to the last part when that is a text, too.
func appendText(parts []Part, text string) []Part {
	if n := len(parts); n > 0 && parts[n-1].Type == Text {
		parts[n-1].Text += Separator + text
		return parts
	}
	return append(parts, Part{Type: Text, Text: text})
}

// Match reports whether parts are all of a message with that content and number of tool calls: the
// texts joined are its content, and each call is there once and in order.
func Match(parts []Part, content string, calls int) bool {
	var texts []string
	next := int64(0)
	for _, p := range parts {
		switch p.Type {
		case Text:
			texts = append(texts, p.Text)
		case ToolCall:
			if p.Index == nil || *p.Index != next {
				return false
			}
			next++
		default:
			return false
		}
	}
	return next == int64(calls) && strings.Join(texts, Separator) == content
}
