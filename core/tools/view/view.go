package view

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

// Limits on a definition.
const (
	maxRules       = 200 // per list
	maxRelabelled  = 1000
	maxPattern     = 200  // characters
	maxDescription = 4000 // characters
	maxGroups      = 100
	maxGroupName   = 500 // characters
)

const (
	systemServer = "system"
	separator    = "__" // between the server name and the tool's own name
)

// View is a checked definition with compiled rules.
type View struct {
	core.View
	include, exclude []rule
	invalid          bool // the stored definition cannot be understood: the view shows nothing
}

type rule struct {
	core.ToolRule
	app, tool *regexp.Regexp // nil matches anything
}

// subject is what a view decides on: a tool, or an app, represented by a tool with an empty name.
type subject struct {
	server     string
	full, long string
	hints      *hints // nil if unknown
	assume     bool   // show the subject if only unknown hints could decide
}

// hints are the annotations of a tool, with MCP's defaults applied.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

var (
	validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	ownName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// ValidName reports whether a name is valid for a view.
func ValidName(name string) bool { return validName.MatchString(name) }

// New checks a definition and fills in its default. The error is core.CodeBadRequest and names the invalid field.
func New(d core.View) (*View, error) {
	if !ValidName(d.Name) {
		return nil, core.Errorf(core.CodeBadRequest, "name is %.80q; a view's name consists of 1 to 63 lower-case letters, digits and hyphens, and begins with a letter or a digit", d.Name)
	}
	v := &View{View: d}
	var err error
	switch d.Default {
	case "":
		if v.Default = core.ViewAllows; len(d.Include) > 0 {
			v.Default = core.ViewDenies
		}
	case core.ViewDenies:
	case core.ViewAllows:
		if len(d.Include) > 0 {
			return nil, core.Errorf(core.CodeBadRequest, "include has no effect if default is \"allow\"; leave one of them out")
		}
	default:
		return nil, core.Errorf(core.CodeBadRequest, "default is %.50q; it must be %s or %s", d.Default, core.ViewAllows, core.ViewDenies)
	}
	if v.include, err = newRules("include", d.Include); err != nil {
		return nil, err
	}
	if v.exclude, err = newRules("exclude", d.Exclude); err != nil {
		return nil, err
	}
	if err := checkBindings(d); err != nil {
		return nil, err
	}
	return v, checkRelabels(d.Tools)
}

func checkBindings(d core.View) error {
	if err := core.CheckSurface("surface", d.Surface); err != nil {
		return err
	}
	for i, role := range d.Roles {
		if role != core.RoleAdmin && role != core.RoleMember {
			return core.Errorf(core.CodeBadRequest, "roles[%d] is %.50q; it must be %s or %s", i, role, core.RoleAdmin, core.RoleMember)
		}
	}
	if len(d.Groups) > maxGroups {
		return core.Errorf(core.CodeBadRequest, "groups has %d entries; the limit is %d", len(d.Groups), maxGroups)
	}
	for i, name := range d.Groups {
		if name == "" || utf8.RuneCountInString(name) > maxGroupName || strings.ContainsFunc(name, unicode.IsControl) {
			return core.Errorf(core.CodeBadRequest, "groups[%d] must be the name of a group, with 1 to %d characters on one line", i, maxGroupName)
		}
	}
	return nil
}

func newRules(field string, list []core.ToolRule) ([]rule, error) {
	if len(list) > maxRules {
		return nil, core.Errorf(core.CodeBadRequest, "%s has %d rules; the limit is %d", field, len(list), maxRules)
	}
	rules := make([]rule, len(list))
	for i, r := range list {
		if r == (core.ToolRule{}) {
			return nil, core.Errorf(core.CodeBadRequest, "%s[%d] is empty; set tool, app, or an annotation such as readOnly", field, i)
		}
		if utf8.RuneCountInString(r.App) > maxPattern || utf8.RuneCountInString(r.Tool) > maxPattern {
			return nil, core.Errorf(core.CodeBadRequest, "%s[%d] has a pattern of more than %d characters", field, i, maxPattern)
		}
		rules[i] = rule{r, pattern(r.App), pattern(r.Tool)}
	}
	return rules, nil
}

func pattern(text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	return core.NamePattern([]string{text})
}

// checkRelabels makes sure that new names are valid, and that no two tools get the same name.
func checkRelabels(all map[string]core.Relabel) error {
	if len(all) > maxRelabelled {
		return core.Errorf(core.CodeBadRequest, "tools has %d members; the limit is %d", len(all), maxRelabelled)
	}
	taken := map[string]string{}
	for full, as := range all {
		server, own, ok := strings.Cut(full, separator)
		if !ok || server == "" || own == "" {
			return core.Errorf(core.CodeBadRequest, "tools.%.80s is not the full name of a tool, such as files__read", full)
		}
		if server == systemServer {
			return core.Errorf(core.CodeBadRequest, "tools.%.80s is one of the server's own tools, which cannot be renamed or described differently", full)
		}
		if as == (core.Relabel{}) {
			return core.Errorf(core.CodeBadRequest, "tools.%.80s changes nothing; set a name or a description", full)
		}
		if utf8.RuneCountInString(as.Description) > maxDescription {
			return core.Errorf(core.CodeBadRequest, "tools.%.80s.description has more than %d characters", full, maxDescription)
		}
		if as.Name == "" {
			continue
		}
		name := server + separator + as.Name
		if !ownName.MatchString(as.Name) || len(name) > core.MaxToolName {
			return core.Errorf(core.CodeBadRequest, "tools.%.80s.name is %.80q; a name consists of letters, digits, dots, hyphens and underscores, at most %d characters including the app's name",
				full, as.Name, core.MaxToolName)
		}
		if taken[name] != "" {
			return core.Errorf(core.CodeBadRequest, "tools.%.80s.name and tools.%.80s.name are the same, %q; tools need different names", min(full, taken[name]), max(full, taken[name]), as.Name)
		}
		taken[name] = full
	}
	return nil
}

func (v *View) shows(s subject) bool {
	for _, r := range v.exclude {
		if r.matches(s, !s.assume) {
			return false
		}
	}
	if v.Default == core.ViewAllows {
		return true
	}
	for _, r := range v.include {
		if r.matches(s, s.assume) {
			return true
		}
	}
	return false
}

// matches reports whether the rule matches s. If only unknown annotations could decide, it returns unknown.
func (r rule) matches(s subject, unknown bool) bool {
	if r.app != nil && !r.app.MatchString(s.server) {
		return false
	}
	if r.tool != nil && !r.tool.MatchString(s.full) && !r.tool.MatchString(s.long) {
		return false
	}
	if r.ReadOnly == nil && r.Destructive == nil && r.Idempotent == nil && r.OpenWorld == nil {
		return true
	}
	if s.hints == nil {
		return unknown
	}
	equal := func(want *bool, is bool) bool { return want == nil || *want == is }
	return equal(r.ReadOnly, s.hints.readOnly) && equal(r.Destructive, s.hints.destructive) &&
		equal(r.Idempotent, s.hints.idempotent) && equal(r.OpenWorld, s.hints.openWorld)
}

// relabel returns the name and description that the view gives a tool.
func (v *View) relabel(t core.Tool) core.Relabel {
	if as, ok := v.Tools[t.LongName()]; ok {
		return as
	}
	return v.Tools[t.FullName()]
}

// hintsOf reads the annotations of a definition, or returns nil if it cannot be decoded. A read-only tool is never
// destructive, and is idempotent (MCP 2025-11-25, schema: ToolAnnotations).
func hintsOf(raw json.RawMessage) *hints {
	var tool struct {
		Annotations struct {
			ReadOnly    bool  `json:"readOnlyHint"`
			Destructive *bool `json:"destructiveHint"`
			Idempotent  bool  `json:"idempotentHint"`
			OpenWorld   *bool `json:"openWorldHint"`
		} `json:"annotations"`
	}
	if json.Unmarshal(raw, &tool) != nil {
		return nil
	}
	a := tool.Annotations
	return &hints{
		readOnly:    a.ReadOnly,
		destructive: !a.ReadOnly && (a.Destructive == nil || *a.Destructive),
		idempotent:  a.ReadOnly || a.Idempotent,
		openWorld:   a.OpenWorld == nil || *a.OpenWorld,
	}
}
