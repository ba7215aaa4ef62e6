package core

import (
	"strings"
	"unicode/utf8"
)

// NormalizeURI returns the form in which URIs are compared: percent-encoded octets that need no encoding
// are decoded, hexadecimal digits are upper case, and non-ASCII characters are percent-encoded as UTF-8
// (RFC 3986 sections 2.5 and 6.2.2). Other characters, including those of a URI template, are unchanged.
func NormalizeURI(uri string) string {
	if isNormalURI(uri) {
		return uri
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(uri); i++ {
		c := uri[i]
		switch octet, ok := encodedOctet(uri[i:]); {
		case ok && isUnreserved(octet):
			b.WriteByte(octet)
			i += 2
			continue
		case ok:
			c = octet
			i += 2
		case c < utf8.RuneSelf:
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// isNormalURI reports whether a URI has nothing to normalize, which is the usual case.
func isNormalURI(uri string) bool {
	for i := range len(uri) {
		if uri[i] == '%' || uri[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// encodedOctet decodes the percent-encoded octet at the start of text. ok is false if there is none.
func encodedOctet(text string) (octet byte, ok bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	for _, c := range []byte(text[1:3]) {
		switch {
		case '0' <= c && c <= '9':
			octet = octet<<4 | (c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			octet = octet<<4 | (c | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return octet, true
}

func isUnreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// LocalPath reports whether a browser treats p as a path on the current server: //host and /\host lead to other hosts.
func LocalPath(p string) bool {
	control := strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
	return !control && strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//") && !strings.HasPrefix(p, `/\`)
}
