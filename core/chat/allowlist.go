package chat

import (
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/skill"
)

// allowlist is sets of patterns: a tool's name must match one pattern of each set. No set allows all tools.
type allowlist [][]string

// allowlistOf is what a request and the skill picked for it allow. A skill's patterns bind every tool,
// except those of the app that the person looks at.
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
		// A slash has no special meaning in a tool's name.
		ok, err := path.Match(strings.ReplaceAll(g, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
		return ok && err == nil
	})
}
