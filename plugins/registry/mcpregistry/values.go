package mcpregistry

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/plugins/registry"
)

// values collects the variables of one package while its arguments are converted. A variable used several times is
// listed once.
type values struct{ list []registry.Variable }

func (v *values) add(name string, in input) {
	i := slices.IndexFunc(v.list, func(known registry.Variable) bool { return known.Name == name })
	if i >= 0 {
		v.list[i].Required = v.list[i].Required || in.IsRequired
		v.list[i].Secret = v.list[i].Secret || in.IsSecret
		return
	}
	v.list = append(v.list, registry.Variable{
		Name: name, Description: in.Description, Default: in.Default, Choices: in.Choices, Required: in.IsRequired, Secret: in.IsSecret,
	})
}

func (v *values) addAll(inner map[string]input) {
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		v.add(name, inner[name])
	}
}

// text returns the text for an input: its fixed value, adding the variables in it, or {name}.
func (v *values) text(name string, in input) string {
	if in.Value != "" {
		v.addAll(in.Variables)
		return in.Value
	}
	v.add(name, in)
	return "{" + name + "}"
}

// environment adds environment variables. A fixed value becomes a default. A value composed of variables cannot be a
// default, so the environment variable itself must be supplied.
func (v *values) environment(all []keyInput) {
	for _, env := range all {
		in := env.input
		in.Default = cmp.Or(in.Default, in.Value)
		if in.Value != "" && len(in.Variables) > 0 {
			in.Default = ""
			for _, inner := range in.Variables {
				in.IsRequired, in.IsSecret = in.IsRequired || inner.IsRequired, in.IsSecret || inner.IsSecret
				in.Description = cmp.Or(in.Description, inner.Description)
			}
			in.Description = strings.TrimSpace(in.Description + " (of the form " + in.Value + ")")
		}
		v.add(env.Name, in)
	}
}

// arguments returns the elements of an argument vector. A positional argument is its value; a named one is
// --flag=value, or only the flag if nothing says that it takes a value.
func (v *values) arguments(all []argument) []string {
	var args []string
	for _, a := range all {
		takesValue := a.Value != "" || a.Default != "" || a.ValueHint != "" || a.IsRequired || len(a.Choices) > 0
		name := cmp.Or(strings.TrimLeft(a.Name, "-"), a.ValueHint, "argument")
		switch {
		case a.Type != "named":
			args = append(args, v.text(variableName(cmp.Or(a.ValueHint, name)), a.input))
		case takesValue:
			args = append(args, a.Name+"="+v.text(variableName(name), a.input))
		default:
			args = append(args, a.Name)
		}
	}
	return args
}

var notName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// variableName turns a name into one that is valid for an environment variable: api-key becomes api_key.
func variableName(s string) string { return strings.Trim(notName.ReplaceAllString(s, "_"), "_") }
