package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckText returns CodeBadRequest if a text meant for people could be displayed as something else: if it is not valid
// UTF-8, or contains control characters, line breaks or characters that change the direction of text. The message
// includes the field.
func CheckText(field, text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, deceives) {
		return Errorf(CodeBadRequest, "%s must be valid UTF-8 without control characters, line breaks or characters that change the text direction", field)
	}
	return nil
}

func deceives(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// PlainText returns text without the characters that CheckText rejects.
func PlainText(text string) string {
	return strings.Map(func(r rune) rune {
		if deceives(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
