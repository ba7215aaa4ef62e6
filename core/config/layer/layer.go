package layer

import (
	"encoding/json"
	"strings"
)

// Layer is one source of settings: the file, the environment, or the flags.
type Layer struct {
	Value    map[string]any
	Places   Places
	Expanded map[string]bool // paths whose text came from ${env:…}: never quoted
	Problems Problems
}

// New returns a Layer without settings.
func New() *Layer {
	return &Layer{Value: map[string]any{}, Places: Places{}, Expanded: map[string]bool{}}
}

// Set sets a value at a path of one or two steps.
func (l *Layer) Set(path string, value any, source string) {
	l.Places[path] = Place{Source: source}
	l.Expanded[path] = true
	section, key, nested := strings.Cut(path, ".")
	if !nested {
		l.Value[section] = value
		return
	}
	in, _ := l.Value[section].(map[string]any)
	if in == nil {
		in = map[string]any{}
		l.Value[section] = in
	}
	in[key] = value
}

// Over puts l on top of below: mappings are merged, everything else is replaced.
func (l *Layer) Over(below *Layer) *Layer {
	out := New()
	for _, from := range []*Layer{below, l} {
		for path, place := range from.Places {
			out.Places[path] = place
		}
		for path, expanded := range from.Expanded {
			out.Expanded[path] = expanded
		}
		out.Problems = append(out.Problems, from.Problems...)
	}
	out.Value = merge(below.Value, l.Value)
	return out
}

func merge(below, above map[string]any) map[string]any {
	out := make(map[string]any, len(below)+len(above))
	for k, v := range below {
		out[k] = v
	}
	for k, v := range above {
		upper, isMap := v.(map[string]any)
		lower, wasMap := out[k].(map[string]any)
		if isMap && wasMap {
			out[k] = merge(lower, upper)
			continue
		}
		out[k] = v
	}
	return out
}

// Number returns the number that a string represents, or else the string.
func Number(text string) any {
	if n, ok := Plain(strings.TrimSpace(text)).(json.Number); ok {
		return n
	}
	return text
}
