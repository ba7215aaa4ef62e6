package bundle

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// The variables of MCPB: ${__dirname}, ${user_config.KEY}, ${HOME}, ${DESKTOP}, ${DOCUMENTS}, ${DOWNLOADS},
// ${pathSeparator} and ${/}. Each text is expanded once, from left to right: expanded values are not expanded again.
// Any other ${NAME} is left unchanged, so the server's own environment cannot be read.

const userConfigPrefix = "user_config."

var (
	variable   = regexp.MustCompile(`\$\{([^${}]+)\}`)
	wholeValue = regexp.MustCompile(`^\$\{user_config\.([^${}]+)\}$`)
)

func refersToUserConfig(s string) bool { return strings.Contains(s, "${"+userConfigPrefix) }

// wholeField returns the key if s is exactly one reference to a user_config field.
func wholeField(s string) (key string, ok bool) {
	match := wholeValue.FindStringSubmatch(s)
	if match == nil {
		return "", false
	}
	return match[1], true
}

// expander holds the values of the variables.
type expander struct {
	places map[string]string
	fields map[string][]string // by user_config key; an unset field has no values
	multi  map[string]bool     // the field has several values
}

func newExpander(dir, home string) *expander {
	sep := string(filepath.Separator)
	return &expander{
		fields: map[string][]string{},
		multi:  map[string]bool{},
		places: map[string]string{
			"__dirname":     dir,
			"HOME":          home,
			"DESKTOP":       filepath.Join(home, "Desktop"),
			"DOCUMENTS":     filepath.Join(home, "Documents"),
			"DOWNLOADS":     filepath.Join(home, "Downloads"),
			"pathSeparator": sep,
			"/":             sep,
		},
	}
}

// text expands s to one string. Several values of a field are joined with commas; an unset field is empty.
func (x *expander) text(s string) (string, error) {
	var failed error
	out := variable.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		if value, ok := x.places[name]; ok {
			return value
		}
		key, ok := strings.CutPrefix(name, userConfigPrefix)
		if !ok {
			return ref
		}
		values, ok := x.fields[key]
		if !ok {
			failed = fmt.Errorf("refers to ${%s}, which user_config does not declare", name)
		}
		return strings.Join(values, ",")
	})
	return out, failed
}

// args expands an argument vector. An argument that is exactly one reference to a field with several values becomes
// one argument per value, possibly none. Every other argument remains one argument, whatever its values contain.
func (x *expander) args(args []string) ([]string, error) {
	out := make([]string, 0, len(args))
	for i, arg := range args {
		if key, ok := wholeField(arg); ok && x.multi[key] {
			out = append(out, x.fields[key]...)
			continue
		}
		text, err := x.text(arg)
		if err != nil {
			return nil, fmt.Errorf("server.mcp_config.args[%d] %w", i, err)
		}
		out = append(out, text)
	}
	return out, nil
}

// env expands an environment. A variable that is exactly one reference to an unset field is omitted, so that
// the program's own default applies.
func (x *expander) env(env map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(env))
	for name, value := range env {
		key, whole := wholeField(value)
		if values, declared := x.fields[key]; whole && declared && len(values) == 0 {
			continue
		}
		text, err := x.text(value)
		if err != nil {
			return nil, fmt.Errorf("server.mcp_config.env.%s %w", name, err)
		}
		out[name] = text
	}
	return out, nil
}
