package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// partSeparator separates the text of two turns.
const partSeparator = "\n\n"

// The types of a Part.
const (
	PartText      = "text"
	PartToolCall  = "toolCall"
	PartReasoning = "reasoning" // the model's reasoning
	PartSummary   = "summary"   // a summary of earlier messages, which the model received in their place
)

// Part is one part of an assistant message, such as a piece of text or a tool call. The parts of a message are in the
// order in which they were streamed.
type Part struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`  // not set for a tool call
	Index *int64 `json:"index,omitempty"` // for a tool call: its index in the message's tool calls, from 0
	Ms    int64  `json:"ms,omitempty"`    // for reasoning: how long it took
}

// turnParts contains what the model produced in one turn.
type turnParts struct {
	before []Part // reasoning and summaries, before the text
	text   string
	calls  int
}

// partsOfTurns returns the parts of a message. In each turn, reasoning and summaries come first, then the text, then
// the tool calls.
func partsOfTurns(turns []turnParts) (parts []Part) {
	next := int64(0)
	for _, t := range turns {
		parts = append(parts, t.before...)
		if t.text != "" {
			parts = appendTextPart(parts, t.text)
		}
		for range t.calls {
			index := next
			parts = append(parts, Part{Type: PartToolCall, Index: &index})
			next++
		}
	}
	return parts
}

// appendTextPart appends text as a new part, or adds it to the last part if that is text too.
func appendTextPart(parts []Part, text string) []Part {
	if n := len(parts); n > 0 && parts[n-1].Type == PartText {
		parts[n-1].Text += partSeparator + text
		return parts
	}
	return append(parts, Part{Type: PartText, Text: text})
}

// PartsMatch reports whether parts are complete for a message with the given content and number of tool calls: the
// text parts joined are the content, and each call appears once and in order.
func PartsMatch(parts []Part, content string, calls int) bool {
	var texts []string
	next := int64(0)
	for _, p := range parts {
		switch p.Type {
		case PartText:
			texts = append(texts, p.Text)
		case PartToolCall:
			if p.Index == nil || *p.Index != next {
				return false
			}
			next++
		case PartReasoning, PartSummary:
		default:
			return false
		}
	}
	return next == int64(calls) && strings.Join(texts, partSeparator) == content
}

// WithoutReasoning returns the metadata of a message without the model's reasoning, which is not exported.
func WithoutReasoning(metadata json.RawMessage) json.RawMessage {
	var m struct {
		Parts []Part `json:"parts"`
	}
	isReasoning := func(p Part) bool { return p.Type == PartReasoning }
	if json.Unmarshal(metadata, &m) != nil || !slices.ContainsFunc(m.Parts, isReasoning) {
		return metadata
	}
	kept, err := json.Marshal(slices.DeleteFunc(m.Parts, isReasoning))
	if err != nil {
		return metadata
	}
	without, err := rawjson.Set(metadata, rawjson.Member{Name: "parts", Value: kept})
	if err != nil {
		return metadata
	}
	return without
}
