package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ServedSkill is a skill of a workspace as MCP clients receive it (extension io.modelcontextprotocol/skills).
type ServedSkill struct {
	Name        string
	Frontmatter json.RawMessage // all of it, as a JSON object
	Files       []SkillFile     // all of them, by path; SKILL.md is one
}

// SkillFile is a file of a skill.
type SkillFile struct {
	Path    string // within the skill, with slashes
	Content []byte
}

// The limits of the Agent Skills specification, in characters.
const (
	maxSkillName          = 64
	maxSkillDescription   = 1024
	maxSkillCompatibility = 500
)

var skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// CheckSkillFrontmatter returns the name of the skill with this front matter, a JSON object. The error describes why the
// front matter does not conform to the Agent Skills specification. Some hosts reject a whole list that contains such a skill.
func CheckSkillFrontmatter(front json.RawMessage) (name string, err error) {
	var all map[string]json.RawMessage // member names are case-sensitive
	if err := json.Unmarshal(front, &all); err != nil || all == nil {
		return "", errors.New("must be an object")
	}
	name, _ = textOf(all["name"])
	description, _ := textOf(all["description"])
	compatibility, isText := textOf(all["compatibility"])
	_, hasPrototype := all["__proto__"]
	switch {
	case len(name) > maxSkillName || !skillName.MatchString(name):
		return "", fmt.Errorf("name: must be text of at most %d lower-case letters and digits, with single hyphens between them", maxSkillName)
	case strings.TrimSpace(description) == "" || utf8.RuneCountInString(description) > maxSkillDescription:
		return "", fmt.Errorf("description: must be text of at most %d characters", maxSkillDescription)
	case all["compatibility"] != nil && (!isText || compatibility == "" || utf8.RuneCountInString(compatibility) > maxSkillCompatibility):
		return "", fmt.Errorf("compatibility: must be text of 1 to %d characters", maxSkillCompatibility)
	case hasPrototype:
		return "", errors.New("__proto__: rename this member, because hosts written in JavaScript cannot read it")
	}
	return name, checkSkillMetadata(all["metadata"])
}

func checkSkillMetadata(metadata json.RawMessage) error {
	var all map[string]json.RawMessage
	if metadata == nil {
		return nil
	}
	if err := json.Unmarshal(metadata, &all); err != nil || all == nil {
		return errors.New("metadata: must be a map of names to text")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, ok := textOf(all[name]); !ok {
			return fmt.Errorf("metadata.%.100s: must be text; write a list as text with commas, and a number in quotation marks", name)
		}
	}
	return nil
}

// textOf returns the text of a JSON string. ok is false for other values, and for none.
func textOf(value json.RawMessage) (text string, ok bool) {
	var parsed *string
	if json.Unmarshal(value, &parsed) != nil || parsed == nil {
		return "", false
	}
	return *parsed, true
}
