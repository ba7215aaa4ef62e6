package skill

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The types of skills.
const (
	TypeContext = "context" // always in the prompt
	TypeSkill   = "skill"   // in the prompt if a message asks for it
)

const (
	priorityDefault = 50
	maxSkill        = 256 << 10 // bytes per file
)

// Skill is one skill, encoded as in GET /v1/skills.
type Skill struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Type         string   `json:"type"`
	Priority     int      `json:"priority"` // lower comes first
	Triggers     []string `json:"triggers"`
	Keywords     []string `json:"keywords"`
	AllowedTools []string `json:"allowedTools"` // globs; none means every tool
	Source       string   `json:"source"`       // the file, relative to the parent of its folder
	Body         string   `json:"-"`

	file string // its path; "" until it is in a folder
}

// header is the front matter.
type header struct {
	Name         string   `yaml:"name"`
	Description  string   `yaml:"description"`
	Type         string   `yaml:"type"`
	Priority     *int     `yaml:"priority"`
	AllowedTools list     `yaml:"allowed-tools"`
	Metadata     metadata `yaml:"metadata"`
}

type metadata struct {
	Triggers list `yaml:"triggers"`
	Keywords list `yaml:"keywords"`
}

// list is a YAML list of strings, or one string with commas.
type list []string

func (l *list) UnmarshalYAML(n *yaml.Node) error {
	var all []string
	if n.Kind == yaml.ScalarNode {
		all = strings.Split(n.Value, ",")
	} else if err := n.Decode(&all); err != nil {
		return fmt.Errorf("line %d: must be a list of text: %w", n.Line, err)
	}
	for _, item := range all {
		if item = strings.TrimSpace(item); item != "" {
			*l = append(*l, item)
		}
	}
	return nil
}

// ValidName reports whether a name is valid for a skill.
func ValidName(name string) bool { return namePattern.MatchString(name) }

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

// Parse parses the file of a skill.
func Parse(content []byte) (Skill, error) {
	if len(content) > maxSkill {
		return Skill{}, fmt.Errorf("is larger than %d bytes", maxSkill)
	}
	front, body, err := split(content)
	if err != nil {
		return Skill{}, err
	}
	var h header
	if err := yaml.Unmarshal(front, &h); err != nil {
		return Skill{}, fmt.Errorf("the front matter: %w", err)
	}
	s := Skill{
		Name: strings.TrimSpace(h.Name), Description: strings.TrimSpace(h.Description), Type: h.Type, Priority: priorityDefault,
		Triggers: orEmpty(h.Metadata.Triggers), Keywords: orEmpty(h.Metadata.Keywords), AllowedTools: orEmpty(h.AllowedTools),
		Body: strings.TrimSpace(string(body)),
	}
	if h.Priority != nil {
		s.Priority = *h.Priority
	}
	if s.Type == "" {
		s.Type = TypeSkill
	}
	switch {
	case s.Name == "":
		return Skill{}, errors.New("name is missing in the front matter")
	case s.Type != TypeContext && s.Type != TypeSkill:
		return Skill{}, fmt.Errorf("type is %q; it must be context or skill", s.Type)
	case s.Body == "":
		return Skill{}, errors.New("there is no text after the front matter")
	}
	return s, nil
}

// split separates the front matter, which is between two lines of three hyphens, from the text.
func split(content []byte) (front, body []byte, err error) {
	content = bytes.ReplaceAll(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(content, []byte("---\n"))
	if !ok {
		return nil, nil, errors.New("it does not start with front matter: put a line of --- first")
	}
	front, body, ok = bytes.Cut(append([]byte("\n"), rest...), []byte("\n---\n"))
	if !ok {
		if front, ok = bytes.CutSuffix(front, []byte("\n---")); !ok {
			return nil, nil, errors.New("the front matter does not end: put a line of --- after it")
		}
	}
	return append(front[:len(front):len(front)], '\n'), body, nil // a block scalar at the end includes the line break
}

func orEmpty(l list) []string {
	if l == nil {
		return []string{}
	}
	return l
}
