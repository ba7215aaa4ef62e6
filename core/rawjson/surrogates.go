package rawjson

import (
	"bytes"
	"encoding/hex"
	"unicode/utf16"
)

// LoneSurrogates returns the escapes in a valid text that represent one half of a surrogate pair, in order, as
// written after the "\u". Their meaning is undefined (RFC 8259, section 8.2): encoding/json reads them as
// U+FFFD.
func LoneSurrogates(text []byte) (lone []string) {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			return lone
		}
		first, isUnit := codeUnit(text[at:])
		if !isUnit {
			text = text[at+2:]
			continue
		}
		written := string(text[at+2 : at+6])
		text = text[at+6:]
		if !utf16.IsSurrogate(first) {
			continue
		}
		if second, ok := codeUnit(text); ok && utf16.DecodeRune(first, second) != '\uFFFD' {
			text = text[6:]
			continue
		}
		lone = append(lone, written)
	}
}

// codeUnit reads an escape such as \u00e9 at the start of text.
func codeUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	raw, err := hex.DecodeString(string(text[2:6]))
	if err != nil {
		return 0, false
	}
	return rune(raw[0])<<8 | rune(raw[1]), true
}
