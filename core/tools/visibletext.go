package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// visibleText returns the definition of a tool, prompt or resource in which characters that people do not
// see are written as [U+202E] in titles and descriptions: characters that change the direction of text, tag
// characters, zero-width and control characters. A model reads them, so they could hide instructions from
// the person who approves a tool. changed reports whether there were any.
func visibleText(raw json.RawMessage) (visible json.RawMessage, changed bool) {
	if !mayHideText(raw) {
		return raw, false
	}
	visible = visibleIn(raw, "")
	return visible, !bytes.Equal(visible, raw)
}

// mayHideText reports whether a definition has escapes or characters beyond ASCII at all.
func mayHideText(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\u`)) || bytes.IndexFunc(raw, isHidden) >= 0
}

// visibleIn returns the value of a member with the titles and descriptions in it changed.
func visibleIn(value json.RawMessage, name string) json.RawMessage {
	trimmed := bytes.TrimSpace(value)
	if len(trimmed) == 0 {
		return value
	}
	switch trimmed[0] {
	case '{':
		return orUnchanged(value, func() (json.RawMessage, error) {
			return rawjson.Edit(trimmed, func(name string, inner json.RawMessage) (json.RawMessage, error) {
				return visibleIn(inner, name), nil
			})
		})
	case '[':
		return orUnchanged(value, func() (json.RawMessage, error) {
			return rawjson.EditElements(trimmed, func(inner json.RawMessage) (json.RawMessage, error) {
				return visibleIn(inner, ""), nil
			})
		})
	case '"':
		var text string
		if name != "title" && name != "description" || json.Unmarshal(trimmed, &text) != nil || !strings.ContainsFunc(text, isHidden) {
			return value
		}
		return rawjson.Quote(showHidden(text))
	}
	return value
}

// showHidden replaces hidden characters with their code points.
func showHidden(text string) string {
	var b strings.Builder
	for _, r := range text {
		if isHidden(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isHidden reports whether people do not see a character. Joiners and variation selectors are parts of
// visible emoji and scripts.
func isHidden(r rune) bool {
	switch r {
	case '\n', '\r', '\t', '\u200c', '\u200d':
		return false
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)
}
