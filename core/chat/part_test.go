package chat_test

import (
	"github.com/ropewalk/ropewalk/core/chat"
	"testing"
)

func TestPartsMatchOnlyTheirOwnMessage(t *testing.T) {
	at := func(i int64) *int64 { return &i }
	text, first, second := chat.Part{Type: "text", Text: "a"}, chat.Part{Type: "toolCall", Index: at(0)}, chat.Part{Type: "toolCall", Index: at(1)}
	for _, c := range []struct {
		name    string
		parts   []chat.Part
		content string
		calls   int
		want    bool
	}{
		{"all of it", []chat.Part{text, first, text, second}, "a\n\na", 2, true},
		{"with reasoning and a summary", []chat.Part{{Type: "summary", Text: "s"}, {Type: "reasoning", Text: "r"}, text, first}, "a", 1, true},
		{"a missing call", []chat.Part{text, first}, "a", 2, false},
		{"a repeated call", []chat.Part{text, first, first}, "a", 2, false},
		{"a call that does not exist", []chat.Part{text, first, second}, "a", 1, false},
		{"calls in another order", []chat.Part{second, first, text}, "a", 2, false},
		{"a call without its index", []chat.Part{text, {Type: "toolCall"}}, "a", 1, false},
		{"another text", []chat.Part{text, first}, "b", 1, false},
		{"an unknown type", []chat.Part{text, {Type: "image"}}, "a", 0, false},
	} {
		if got := chat.PartsMatch(c.parts, c.content, c.calls); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
