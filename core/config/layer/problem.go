package layer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where a value was set.
type Place struct {
	Source string // the file, "environment", or a flag such as "flag --port"
	Line   int    // 1-based; 0 if the source has no lines
	Column int    // 1-based
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d", p.Source, p.Line)
}

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	Place
	Path    string // auth.clientId, registries[1].adapter; "" for the whole file
	Message string // what is wrong and what to do; never a value that could be secret

	// Variable is the environment variable that the value refers to and that is not set; "" if something else
	// is wrong.
	Variable string
}

func (p Problem) String() string {
	var parts []string
	for _, part := range []string{p.Place.String(), p.Path, p.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems is everything that is wrong with a configuration. It is an error.
type Problems []Problem

func (ps Problems) Error() string {
	if len(ps) == 1 {
		return "configuration: " + ps[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %d problems", len(ps))
	for _, p := range ps {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Sorted returns the problems in file order.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return slices.Compact(ps)
}

// Places records where each path was set.
type Places map[string]Place

// Locate returns where the value at a path was set: the place of the path itself, or else of the nearest path
// containing it. It returns false if none of them was set.
func (ps Places) Locate(path string) (Place, bool) {
	for ; path != ""; path = Parent(path) {
		if p, ok := ps[path]; ok {
			return p, true
		}
	}
	return Place{}, false
}

// Parent removes the last step of a path: "a.b[1].c" -> "a.b[1]" -> "a.b" -> "a" -> "".
func Parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// Join appends a key to a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
