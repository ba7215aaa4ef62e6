package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/ropewalk/ropewalk/core/config/layer"
)

// Validate checks a layer against the schema, and removes rejected values, so that the rest can still be
// checked.
func (s *Schema) Validate(l *layer.Layer) {
	s.dropEmpty(s.root, l.Value)
	err := s.compiled.Validate(l.Value)
	if err == nil {
		return
	}
	refused, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		l.Problems = append(l.Problems, layer.Problem{Message: err.Error()})
		return
	}
	v := validation{Schema: s, Layer: l, known: slices.Clone(l.Problems)}
	v.add(refused)
	for _, location := range v.bad {
		prune(l.Value, location)
	}
}

type validation struct {
	*Schema
	*layer.Layer
	known layer.Problems // problems found earlier, such as an unset environment variable
	bad   [][]string     // locations of rejected values
}

// add turns a tree of validation errors into problems.
func (v *validation) add(e *jsonschema.ValidationError) {
	part := v.At(e.SchemaURL)
	wants, _ := part["x-wants"].(string)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.reject(append(slices.Clone(e.InstanceLocation), name), "unknown key%s", Nearest(name, Known(part)))
		}
	case *kind.Required:
		for _, name := range k.Missing {
			v.require(e.InstanceLocation, name, Known(part))
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			v.reportMissing(e.InstanceLocation, k.Prop, "requires "+name+purpose(k.Prop, name))
		}
	case *kind.PropertyNames: // the library does not locate these reliably; see config.check
	case *kind.OneOf, *kind.AnyOf, *kind.Not:
		v.reportMissing(e.InstanceLocation, "", "must be "+wants)
	case *kind.Enum:
		v.reject(e.InstanceLocation, "%s", v.notOneOf(e.InstanceLocation, k))
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			if !explained(cause, e.Causes) {
				v.add(cause)
			}
		}
	default:
		v.reject(e.InstanceLocation, "%s", plainText(k, wants))
	}
}

// explained reports whether an unknown key probably explains why a mapping matches none of its possible forms: all then
// contains an error for that key.
func explained(e *jsonschema.ValidationError, all []*jsonschema.ValidationError) bool {
	if form, ok := e.ErrorKind.(*kind.OneOf); !ok || len(form.Subschemas) > 0 {
		return false
	}
	return slices.ContainsFunc(all, func(other *jsonschema.ValidationError) bool {
		_, unknown := other.ErrorKind.(*kind.AdditionalProperties)
		return unknown && slices.Equal(other.InstanceLocation, e.InstanceLocation)
	})
}

// plainText describes what is wrong with one value, without showing it.
func plainText(k jsonschema.ErrorKind, wants string) string {
	switch k := k.(type) {
	case *kind.Type:
		want := make([]string, len(k.Want))
		for i, w := range k.Want {
			want[i] = word(w)
		}
		return fmt.Sprintf("must be %s, not %s", strings.Join(want, " or "), word(k.Got))
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d entries", k.Want)
	}
	if wants != "" {
		return "must be " + wants
	}
	return "does not match the schema: " + strings.Join(k.KeywordPath(), "/")
}

// word returns the word for a JSON type that operators use.
func word(jsonType string) string {
	switch jsonType {
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	}
	return "nothing"
}

func (v *validation) notOneOf(location []string, k *kind.Enum) string {
	var options []string
	for _, w := range k.Want {
		options = append(options, fmt.Sprint(w))
	}
	got, isText := k.Got.(string)
	if !isText || v.Expanded[v.path(location)] {
		return "must be one of " + strings.Join(options, ", ")
	}
	return fmt.Sprintf("%q is not one of %s%s", got, strings.Join(options, ", "), nearestOnly(got, options))
}

// require reports that a key is missing, and any key that looks like a misspelling of it. The schema does not reject
// misspellings where an adapter may have its own keys.
func (v *validation) require(location []string, name string, names []string) {
	mapping, _ := lookup(v.Value, location).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(mapping)) {
		if !slices.Contains(names, key) && nearestOnly(key, []string{name}) != "" {
			v.report(layer.Join(v.path(location), key), v.path(location), "unknown key"+nearestOnly(key, []string{name}))
		}
	}
	v.reportMissing(location, name, "is required")
}

// reject reports a value and removes it.
func (v *validation) reject(location []string, format string, args ...any) {
	v.report(v.path(location), v.path(location), fmt.Sprintf(format, args...))
	v.bad = append(v.bad, location)
}

// reportMissing reports that something is missing. Existing values are kept.
func (v *validation) reportMissing(location []string, name, message string) {
	around := v.path(location)
	path := around
	if name != "" {
		path = layer.Join(around, name)
	}
	v.report(path, around, message)
}

// report adds a problem, unless there already is one at the same path: the value is then not the one in the file.
func (v *validation) report(path, around, message string) {
	if slices.ContainsFunc(v.known, func(p layer.Problem) bool { return p.Path == path }) {
		return
	}
	place, ok := v.Places[path]
	if !ok {
		place = v.Places[around]
	}
	v.Problems = append(v.Problems, layer.Problem{Place: place, Path: path, Message: message})
}

// path formats a location for operators: registries[1].adapter.
func (v *validation) path(location []string) string {
	var here any = v.Value
	path := ""
	for _, step := range location {
		switch node := here.(type) {
		case []any:
			path += "[" + step + "]"
			i, err := strconv.Atoi(step)
			if err == nil && i < len(node) {
				here = node[i]
			}
		case map[string]any:
			path = layer.Join(path, step)
			here = node[step]
		default:
			path = layer.Join(path, step)
		}
	}
	return path
}

// Nearest suggests the known name that was probably meant, or else lists all of them.
func Nearest(name string, names []string) string {
	if s := nearestOnly(name, names); s != "" {
		return s
	}
	if len(names) == 0 {
		return ""
	}
	return "; known names are " + strings.Join(names, ", ")
}

func nearestOnly(name string, names []string) string {
	near := Near(name, names)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// Near returns the known name that is most similar, or "" if none is.
func Near(name string, names []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, n := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	return best
}

// lookup returns the value at a location, or nil if there is none.
func lookup(root any, location []string) any {
	here := root
	for _, step := range location {
		switch node := here.(type) {
		case map[string]any:
			here = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			here = node[i]
		default:
			return nil
		}
	}
	return here
}

// prune removes the value at a location from its mapping. In a list, it leaves an empty item.
func prune(root map[string]any, location []string) {
	if len(location) == 0 {
		clear(root)
		return
	}
	var here any = root
	for i, step := range location {
		last := i == len(location)-1
		switch node := here.(type) {
		case map[string]any:
			if last {
				delete(node, step)
			}
			here = node[step]
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index >= len(node) {
				return
			}
			if last {
				node[index] = nil
			}
			here = node[index]
		}
	}
}

// dropEmpty removes known keys that have no value: if every line under `http:` is commented out, `http` is treated as not
// set.
func (s *Schema) dropEmpty(part map[string]any, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(value)) {
			child := childOf(part, key)
			if child == nil {
				continue
			}
			if value[key] == nil {
				delete(value, key)
				continue
			}
			s.dropEmpty(child, value[key])
		}
	case []any:
		items := s.itemsOf(part)
		for _, item := range value {
			s.dropEmpty(items, item)
		}
	}
}

// childOf returns the schema of a key: its own, or else the one for all other keys. It returns nil for an unknown key.
func childOf(part map[string]any, key string) map[string]any {
	properties, _ := part["properties"].(map[string]any)
	if child, ok := properties[key].(map[string]any); ok {
		return child
	}
	child, _ := part["additionalProperties"].(map[string]any)
	return child
}

// purpose explains a key that people confuse with another one, such as the folder of a registry.
func purpose(key, missing string) string {
	if key == "path" && missing == "sha256" {
		return ": path is the executable of a plugin that is not built in"
	}
	return ""
}
