package chat

import (
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/skill"
)

// allowlist contains sets of patterns. A tool is allowed if its name matches at least one pattern in every set; an empty
// allowlist allows all tools.
type allowlist [][]string

// allowlistOf combines a request's patterns with those of the skill picked for it. The skill's patterns apply to
// every tool except those of the app that the person is looking at.
func allowlistOf(request []string, picked *skill.Skill, server string) allowlist {
	var a allowlist
	if len(request) > 0 {
		a = append(a, request)
	}
	if picked != nil && len(picked.AllowedTools) > 0 {
		patterns := picked.AllowedTools
		if server != "" && !strings.ContainsAny(server, `*?[\`) {
			patterns = slices.Concat(patterns, []string{server + "__*"})
		}
		a = append(a, patterns)
	}
	return a
}

func (a allowlist) allows(name string) bool {
	for _, globs := range a {
		if !matches(globs, name) {
			return false
		}
	}
	return true
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		// A slash has no special meaning in a tool's name. Shells write [! for Go's [^.
		ok, err := path.Match(strings.NewReplacer("/", "\x01", "[!", "[^").Replace(g), strings.ReplaceAll(name, "/", "\x01"))
		return ok && err == nil
	})
}
