package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/config/layer"
)

// Value is one effective setting.
type Value struct {
	Path   string `json:"path"`   // as in the file: http.port, registries[0].name
	Value  any    `json:"value"`  // "[redacted]" for secrets; with Inspect, "[unset]" for a value whose variable is not set
	Source string `json:"source"` // the file with the line, the flag, the environment variable, or "default"
}

// secretKey matches the names of settings that contain secrets.
var secretKey = regexp.MustCompile(`(?i)(key|secret|token|password|credentials?)$`)

// secretPath matches settings whose values may be secret regardless of their names.
var secretPath = regexp.MustCompile(`^apps\.[^.]+\.(env|userConfig|transport\.(auth|headers))(\.|$)`)

// Effective returns every effective setting, ordered by path, with its source. It redacts whatever may be
// secret: values with such a name or path, and values that the file takes from the environment.
func (c *Config) Effective() []Value { return c.effective }

func effective(l *layer.Layer) []Value {
	var all []Value
	var add func(path string, v any)
	add = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				add(strings.TrimPrefix(path+"."+key, "."), v[key])
			}
		case []any:
			for i, item := range v {
				add(fmt.Sprintf("%s[%d]", path, i), item)
			}
		case nil:
		default:
			source := "default"
			place, set := placeOf(l, path)
			if set {
				source = place.String()
			}
			fromFile := l.Expanded[path] && place.Line > 0
			all = append(all, Value{Path: path, Value: shown(path, v, fromFile), Source: source})
		}
	}
	add("", l.Value)
	return all
}

// placeOf returns where a setting, or the list that contains it, was set.
func placeOf(l *layer.Layer, path string) (Place, bool) {
	for {
		if p, ok := l.Places[path]; ok {
			return p, true
		}
		i := strings.LastIndexByte(path, '[')
		if i < 0 || !strings.HasSuffix(path, "]") { // the default of a key in a section that was set
			return Place{}, false
		}
		path = path[:i]
	}
}

// shown returns a value in the form in which it may be printed.
func shown(path string, v any, substituted bool) any {
	text, isText := v.(string)
	if !isText || text == "" {
		return v
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	if substituted || secretKey.MatchString(name) || secretPath.MatchString(path) {
		return "[redacted]"
	}
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}
