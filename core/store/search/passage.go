package search

import (
	"bytes"
	"strings"
	"unicode"
)

const (
	passageBefore = 20 // characters of a passage before the word that was found
	passageLength = 120
)

// Passage returns the first word of text that matches one of the terms, on one line with some of the text around it, or
// "" if no word matches.
func Passage(text string, terms []Term) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	start := -1
	for i, r := range text + " " {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r) {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 && matches(split(text[start:i]), terms) {
			for at := range text[start:i] { // in a script without spaces, the match may begin later
				if words := split(text[start+at : i]); len(words) > 0 && matches(words[:1], terms) {
					start += at
					break
				}
			}
			return around(text, start)
		}
		start = -1
	}
	return ""
}

func matches(words []string, terms []Term) bool {
	for _, w := range words {
		for _, t := range terms {
			if bytes.Compare([]byte(w), t.low) >= 0 && bytes.Compare([]byte(w), t.high) < 0 {
				return true
			}
		}
	}
	return false
}

// around returns the part of text around a position, without line breaks.
func around(text string, at int) string {
	before, after := []rune(text[:at]), []rune(text[at:])
	head, tail := "", ""
	if cut := len(before) - passageBefore; cut > 0 {
		head, before = "…", before[cut:]
	}
	if room := passageLength - len(before); len(after) > room {
		tail, after = "…", after[:room]
	}
	return head + strings.Join(strings.Fields(string(before)+string(after)), " ") + tail
}
