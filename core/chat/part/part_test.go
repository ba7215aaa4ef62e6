package part_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/chat/part"
)

func TestPartsMatchOnlyTheirOwnMessage(t *testing.T) {
	at := func(i int64) *int64 { return &i }
	text, first, second := part.Part{Type: "text", Text: "a"}, part.Part{Type: "toolCall", Index: at(0)}, part.Part{Type: "toolCall", Index: at(1)}
	for _, c := range []struct {
		name    string
		parts   []part.Part
		content string
		calls   int
		want    bool
	}{
		{"all of it", []part.Part{text, first, text, second}, "a\n\na", 2, true},
		{"a call less", []part.Part{text, first}, "a", 2, false},
		{"a call twice", []part.Part{text, first, first}, "a", 2, false},
		{"a call that is not there", []part.Part{text, first, second}, "a", 1, false},
		{"another order of calls", []part.Part{second, first, text}, "a", 2, false},
		{"a call without its index", []part.Part{text, {Type: "toolCall"}}, "a", 1, false},
		{"another text", []part.Part{text, first}, "b", 1, false},
		{"an unknown type", []part.Part{text, {Type: "image"}}, "a", 0, false},
	} {
		if got := part.Match(c.parts, c.content, c.calls); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
