package search

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnExcerptContainsTheWordThatWasFound(t *testing.T) {
	long := strings.Repeat("before ", 100)
	for _, c := range []struct{ name, text, query, want string }{
		{"a short text", "The invoice is due.", "invoice", "The invoice is due."},
		{"case and accents", "Ein Café\n\nin Köln", "cafe", "Ein Café in Köln"},
		{"the beginning of the last word", "the invoices", "invo", "the invoices"},
		{"one of two words", "the parrot", "invoice parrot", "the parrot"},
		{"the end of a word does not count", "preinvoice", "invoice", ""},
		{"nothing", "the parrot", "invoice", ""},
		{"an incomplete character at the end", "the \xe2\x82", "the", "the \ufffd\ufffd"},
		{"a script without spaces", strings.Repeat("あ", 300) + "請求書です", "請求", "…" + strings.Repeat("あ", passageBefore) + "請求書です"},
	} {
		if got := Passage(c.text, Terms(c.query)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	got := Passage(long+"the invoice is due "+strings.Repeat("after ", 100), Terms("invoice"))
	if !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") || !strings.Contains(got, "the invoice is due") || utf8.RuneCountInString(got) > passageLength+2 {
		t.Errorf("in a long text: %q", got)
	}
}
