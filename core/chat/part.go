package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Separator is between the texts of two turns.
const partSeparator = "\n\n"

// The types of a Part.
const (
	PartText      = "text"
	PartToolCall  = "toolCall"
	PartReasoning = "reasoning" // what the model thought
	PartSummary   = "summary"   // of the messages before, which the model got instead of them
)

// Part is one part of an assistant message: a text, or a tool call by its place in the message's tool calls.
// The parts of a message are in the order in which they were streamed.
type Part struct {
	Type  string `json:"type"`
	Text  string `json:"text,omitempty"`  // of all but a tool call
	Index *int64 `json:"index,omitempty"` // of a tool call, from 0
	Ms    int64  `json:"ms,omitempty"`    // of reasoning: how long it took
}

// turnParts is what the model said in one turn.
type turnParts struct {
	before []Part // reasoning and summaries
	text   string
	calls  int
}

// partsOfTurns returns the parts of a message: what the model says in a turn comes before the calls of that turn.
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

// appendText appends a text, or adds it to the last part when that is a text, too.
func appendTextPart(parts []Part, text string) []Part {
	if n := len(parts); n > 0 && parts[n-1].Type == PartText {
		parts[n-1].Text += partSeparator + text
		return parts
	}
	return append(parts, Part{Type: PartText, Text: text})
}

// PartsMatch reports whether parts are all of a message with that content and number of tool calls: the
// texts joined are its content, and each call is there once and in order.
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

// WithoutReasoning is the metadata of a message without what the model thought, which is not exported.
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
