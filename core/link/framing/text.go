package framing

import (
	"bytes"
	"unicode/utf8"
)

// ValidUTF8 returns data as UTF-8, which JSON must be (RFC 8259, section 8.1): invalid bytes become
// U+FFFD, as most readers make them. Data that is valid is returned as it is.
func ValidUTF8(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

// OneLine replaces line breaks with spaces. In valid JSON they occur between tokens only.
func OneLine(raw []byte) {
	for _, c := range []byte{'\n', '\r'} {
		for rest := raw; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}
