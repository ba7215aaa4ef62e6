package trust

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

const (
	maxDifferences = 50   // differences listed
	maxText        = 2000 // bytes shown of a value
	around         = 80   // bytes shown before and after the part in which two long values differ
)

// Differences lists where two definitions differ, in human-readable form. An empty definition has no members.
func Differences(before, after string) []core.Difference {
	var found []core.Difference
	compare("", parse(before), parse(after), &found)
	if len(found) > maxDifferences {
		rest := len(found) - maxDifferences
		found = append(found[:maxDifferences], core.Difference{Path: fmt.Sprintf("and %d more", rest)})
	}
	return found
}

func parse(definition string) any {
	if definition == "" {
		return map[string]any{}
	}
	value, err := rawjson.Decode([]byte(definition))
	if err != nil {
		return definition
	}
	return value
}

// absent is the value of a missing member.
type absent struct{}

func compare(path string, before, after any, found *[]core.Difference) {
	old, isObject := before.(map[string]any)
	next, isObjectToo := after.(map[string]any)
	if isObject && isObjectToo {
		names := slices.Collect(maps.Keys(old))
		names = slices.AppendSeq(names, maps.Keys(next))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			compare(join(path, name), member(old, name), member(next, name), found)
		}
		return
	}
	if a, b := text(before), text(after); a != b {
		a, b = shorten(a, b)
		*found = append(*found, core.Difference{Path: path, Before: a, After: b})
	}
}

func member(object map[string]any, name string) any {
	if value, ok := object[name]; ok {
		return value
	}
	return absent{}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func text(value any) string {
	switch value := value.(type) {
	case absent:
		return ""
	case string:
		return value
	default:
		return encode(value)
	}
}

// shorten removes the common prefix and suffix of two long values.
func shorten(a, b string) (shortA, shortB string) {
	if max(len(a), len(b)) <= maxText/4 {
		return a, b
	}
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	start, end = max(0, start-around), max(0, end-around)
	return excerpt(a, start, len(a)-end), excerpt(b, start, len(b)-end)
}

func excerpt(text string, from, to int) string {
	out := text[from:to]
	cut := len(out) > maxText
	if cut {
		out = out[:maxText]
	}
	out = strings.ToValidUTF8(out, "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) || cut {
		out += "…"
	}
	return out
}

// traitsOf identifies the parts of a tool that stay the same when it is renamed: its description, its title, and an
// input schema with properties. Two tools with a common trait are similar.
func traitsOf(definition string) (traits []digest) {
	members, _ := parse(definition).(map[string]any)
	add := func(name string) {
		if text := encode(members[name]); members[name] != nil && utf8.RuneCountInString(text) > len(`""`) {
			traits = append(traits, digestOf(name+text))
		}
	}
	add("description")
	add("title")
	schema, _ := members["inputSchema"].(map[string]any)
	if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 {
		add("inputSchema")
	}
	return traits
}
