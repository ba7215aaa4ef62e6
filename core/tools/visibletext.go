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

// isInvisible reports whether people may not see a character.
func isInvisible(r rune) bool {
	switch r {
	case '\n', '\r', '\t', zeroWidthNonJoiner, zeroWidthJoiner:
		return false
	case '\u034f', '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0': // a joiner and fillers, which are letters and marks to Unicode
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector)
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// isHidden reports whether people do not see a character that follows another one. Joiners are parts of visible
// emoji and scripts, and so is a variation selector behind a symbol, a keycap or an ideograph. Behind other
// characters it selects nothing, and can carry any text.
func isHidden(r, before rune) bool {
	if !unicode.Is(unicode.Variation_Selector, r) {
		return isInvisible(r)
	}
	return !unicode.In(before, unicode.S, unicode.Han) && !strings.ContainsRune("0123456789#*", before)
}
