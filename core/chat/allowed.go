package chat

import (
	"path"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/skill"
)

// allowed is the sets of globs that a tool's name must match, one of each. No set allows all.
type allowed [][]string

// allowance is what a request and the skill it asked for allow. A skill's globs are about apps: the
// server's own tools, and those of the app that the person looks at, stay.
func allowance(request []string, picked *skill.Skill, server string) allowed {
	var a allowed
	if len(request) > 0 {
		a = append(a, request)
	}
	if picked != nil && len(picked.AllowedTools) > 0 {
		own := []string{systemServer + "__*"}
		if server != "" && !strings.ContainsAny(server, `*?[\`) {
			own = append(own, server+"__*")
		}
		a = append(a, slices.Concat(picked.AllowedTools, own))
	}
	return a
}

func (a allowed) permits(name string) bool {
	for _, globs := range a {
		if !matches(globs, name) {
			return false
		}
	}
	return true
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		// A slash is a letter like others in a tool's name.
		ok, err := path.Match(strings.ReplaceAll(g, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
		return ok && err == nil
	})
}
