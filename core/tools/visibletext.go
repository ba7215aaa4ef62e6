package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// visibleText returns the definition of a tool, prompt or resource with the hidden characters in its titles and
// descriptions written as [U+202E]. Characters that change the direction of text, tag characters, zero-width and
// control characters are hidden. People do not see them but models read them, so they could hide instructions from the
// person who approves a tool. changed reports whether there were any.
func visibleText(raw json.RawMessage) (visible json.RawMessage, changed bool) {
	if !mayHideText(raw) {
		return raw, false
	}
	visible = visibleIn(raw, "")
	return visible, !bytes.Equal(visible, raw)
}

// mayHideText reports whether a definition contains \u escapes or invisible characters at all.
func mayHideText(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\u`)) || bytes.IndexFunc(raw, isInvisible) >= 0
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
		if name != "title" && name != "description" || json.Unmarshal(trimmed, &text) != nil || !strings.ContainsFunc(text, isInvisible) {
			return value
		}
		return rawjson.Quote(showHidden(text))
	}
	return value
}

// showHidden replaces hidden characters with their code points.
func showHidden(text string) string {
	var b strings.Builder
	var before rune
	for _, r := range text {
		if isHidden(r, before) {
			fmt.Fprintf(&b, "[U+%04X]", r)
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// isInvisible reports whether a character may be invisible to people.
func isInvisible(r rune) bool {
	switch r {
	case '\n', '\r', '\t', zeroWidthNonJoiner, zeroWidthJoiner:
		return false
	case '\u034f', '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0': // a joiner and fillers, which Unicode classifies as letters, marks or symbols
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector)
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// isHidden reports whether a character that follows another one is hidden. Zero-width joiners belong to visible emoji
// and scripts. So do variation selectors after a symbol, a keycap or an ideograph; after other characters they select
// nothing and could carry arbitrary text.
func isHidden(r, before rune) bool {
	if !unicode.Is(unicode.Variation_Selector, r) {
		return isInvisible(r)
	}
	return !unicode.In(before, unicode.S, unicode.Han) && !strings.ContainsRune("0123456789#*", before)
}
