package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckText returns an error, which names the field, for a name that people read and that could look like another one:
// with control characters, line breaks, or characters that turn the direction of text, or that is not UTF-8.
func CheckText(field, text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, deceives) {
		return Errorf(CodeBadRequest, "%s must not contain control characters", field)
	}
	return nil
}

func deceives(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// PlainText is text without the characters that CheckText refuses.
func PlainText(text string) string {
	return strings.Map(func(r rune) rune {
		if deceives(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
