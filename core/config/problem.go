package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where a value was set.
type Place struct {
	Source string // the file, or "environment" or "flag --port"
	Line   int    // 1-based; 0 when the source has no lines
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
	Path    string // auth.clientId, registries[1].adapter; "" for the file as a whole
	Message string // what was wrong and what to do; never a value that could be a secret
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

// Problems is all that is wrong with a configuration. Load returns it as its error.
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

// sorted returns the problems in the order an operator reads the file.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return slices.Compact(ps)
}

// places knows where each path was set.
type places map[string]Place

// Locate says where the value at a path was set: the place of the path itself, else of the
// nearest thing around it, else the file as a whole.
func (c *Config) Locate(path string) Place {
	for ; path != ""; path = parent(path) {
		if p, ok := c.places[path]; ok {
			return p
		}
	}
	return Place{Source: c.File}
}

// Problem puts a complaint about a path on its line: how an adapter's own check of its settings
// reads like the server's. The path of adapter setting f is adapter.At + "." + f.
func (c *Config) Problem(path, message string) Problem {
	return Problem{Place: c.Locate(path), Path: path, Message: message}
}

// parent cuts the last step off a path: "a.b[1].c" -> "a.b[1]" -> "a.b" -> "a" -> "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
