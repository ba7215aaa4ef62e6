package cli

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Printable replaces characters that a terminal would interpret or hide. With these, a model or an app could
// move the cursor, change what is on the screen or write to the clipboard.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case isControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Line is Printable for text within a line. A line break or a tab could make the text look like another line.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, Printable(text))
}

// isControl reports whether a terminal interprets or hides a character. Joiners are allowed, because emoji and
// scripts use them.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf)
}

// EscapeJSON escapes the characters in a JSON text that a terminal would interpret. The value does not change.
func EscapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case r == '\r' || !isControl(r): // line breaks can only be between tokens
			b.WriteRune(r)
		case r > 0xffff:
			_, _ = fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Plain returns a writer to w for text without colors. On a terminal, it applies Printable.
func Plain(w io.Writer) io.Writer {
	if IsTerminal(w) {
		return printableWriter{w}
	}
	return w
}

type printableWriter struct{ w io.Writer }

// Write implements io.Writer. text must not end in the middle of a character.
func (p printableWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.w, Printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// clean applies Printable to every string in a decoded response, and escapes JSON that is not decoded.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Printable(v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			clean(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if v.CanSet() {
				v.SetBytes([]byte(EscapeJSON(string(v.Bytes()))))
			}
			return
		}
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map:
		cleanMap(v)
	default:
	}
}

func cleanMap(v reflect.Value) {
	for _, key := range v.MapKeys() {
		k, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		k.Set(key)
		value.Set(v.MapIndex(key))
		clean(k)
		clean(value)
		v.SetMapIndex(key, reflect.Value{})
		v.SetMapIndex(k, value)
	}
}
