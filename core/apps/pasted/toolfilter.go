package pasted

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

// isToolFilter reports whether a key limits which tools of a server are used.
func isToolFilter(name string) bool {
	if !strings.Contains(name, "tool") {
		return false
	}
	for _, other := range []string{"timeout", "approv", "confirm", "alwaysallow", "trust", "calllimit", "maxtool", "prefix"} {
		if strings.Contains(name, other) {
			return false
		}
	}
	return true
}

// toolFilter reads a field that limits the tools of a server: a list of names, a switch for each name, a switch for all
// tools, or an object with several of these.
func (r *reader) toolFilter(key string, value json.RawMessage) {
	exclude := excludes(canonical(key))
	object, array := fields(value), list(value)
	word, _ := scalar(value)
	isTrue, isFalse := truth(word)
	switch {
	case object != nil:
		r.toolSwitches(key, object)
	case array != nil:
		r.toolNames(key, r.texts(key, value))
	case isTrue || isFalse:
		if isTrue == exclude {
			r.filterTools(key, true, []string{"*"})
		}
	default:
		r.toolNames(key, strings.FieldsFunc(word, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }))
	}
}

// toolNames reads the names in a field. If there are none, a field that excludes tools excludes none. One that
// includes tools must name some, because clients differ about what an empty list means.
func (r *reader) toolNames(key string, names []string) {
	exclude := excludes(canonical(key))
	if len(names) == 0 && !exclude && canonical(key) != "availabletools" {
		r.fail(".%s is empty: name the tools that the app should have, or remove it", key)
	}
	r.filterTools(key, exclude, names)
}

// toolSwitches reads an object: a switch for each tool, such as {"delete": false} or {"delete": {"enabled": false}}, or
// fields that are filters themselves.
func (r *reader) toolSwitches(key string, object map[string]json.RawMessage) {
	var on, off []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if list(value) != nil && (excludes(canonical(name)) || includes(canonical(name))) {
			r.toolNames(name, r.texts(key+"."+name, value))
			continue
		}
		used, known := switched(value)
		switch {
		case !known:
			r.fail(".%s.%s does not say whether the tool is used: give true or false", key, name)
		case used:
			on = append(on, name)
		default:
			off = append(off, name)
		}
	}
	switch name := canonical(key); {
	case excludes(name): // {"disabledTools": {"delete": true}}
		off = on
	case includes(name): // {"enabledTools": {"read": true}}
		r.filterTools(key, false, on)
	}
	r.filterTools(key, true, off)
}

// switched reports whether a value switches a tool on. known is false if the value is about something else.
func switched(value json.RawMessage) (on, known bool) {
	for name, inner := range fields(value) {
		word, _ := scalar(inner)
		isTrue, isFalse := truth(word)
		switch canonical(name) {
		case "enabled", "enable", "allowed", "active":
			return isTrue, isTrue || isFalse
		case "disabled", "disable", "denied", "hidden":
			return isFalse, isTrue || isFalse
		}
	}
	word, _ := scalar(value)
	isTrue, isFalse := truth(word)
	switch word = canonical(word); {
	case isTrue || word == "allow" || word == "enabled":
		return true, true
	case isFalse || word == "deny" || word == "disabled":
		return false, true
	}
	return fields(value) != nil, fields(value) != nil // other settings of a tool that is used
}

func (r *reader) filterTools(key string, exclude bool, names []string) {
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxToolPattern || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			r.fail(".%s contains something other than the name of a tool", key)
		}
	}
	if len(names) > maxToolPatterns {
		r.fail(".%s has %d entries; the limit is %d", key, len(names), maxToolPatterns)
	}
	if len(names) == 0 || !exclude && slices.Contains(names, "*") {
		return
	}
	if r.Tools == nil {
		r.Tools = &core.ToolFilter{}
	}
	switch {
	case exclude:
		r.Tools.Exclude = append(r.Tools.Exclude, names...)
	case r.Tools.Include != nil:
		r.fail(".%s: another field already names the tools that the app should have; keep one of them", key)
	default:
		r.Tools.Include = names
	}
}

func includes(name string) bool {
	return slices.ContainsFunc([]string{"include", "enable", "allow", "available", "only"}, func(word string) bool { return strings.Contains(name, word) })
}

func excludes(name string) bool {
	return slices.ContainsFunc([]string{"disable", "exclude", "deny", "denied", "block", "hidden"}, func(word string) bool { return strings.Contains(name, word) })
}
