package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	maxFile  = 1 << 20 // bytes of a configuration file
	maxNodes = 100_000 // values in it, aliases counted each time they are used
	maxDepth = 64
)

// layer is one source of settings: the file, the environment, or the flags.
type layer struct {
	value    map[string]any
	places   places
	expanded map[string]bool // paths whose text came from ${env:…}: never quoted
	problems Problems
}

func newLayer() *layer {
	return &layer{value: map[string]any{}, places: places{}, expanded: map[string]bool{}}
}

// reader turns YAML nodes into the values that the JSON Schema speaks of.
type reader struct {
	*layer
	file  string
	env   Environment
	nodes int
	full  bool // a limit was reached: the rest is not read
}

// readYAML reads a file's text. What is wrong with it is in the layer's problems.
func readYAML(file string, text []byte, env Environment) *layer {
	r := &reader{layer: newLayer(), file: file, env: env}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return r.layer // an empty file, or comments only
	}
	if err != nil {
		r.syntax(err)
		return r.layer
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			r.syntax(err)
		} else {
			r.problem(&second, "", "a second document: the configuration is one document")
		}
	}
	switch root := r.read(doc.Content[0], "", 0).(type) {
	case nil:
	case map[string]any:
		r.value = root
	default:
		r.problem(doc.Content[0], "", "want a mapping of settings")
	}
	return r.layer
}

var syntaxLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

func (r *reader) syntax(err error) {
	place, text := Place{Source: r.file}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		place.Line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	r.problems = append(r.problems, Problem{Place: place, Message: "not YAML: " + text})
}

func (r *reader) problem(n *yaml.Node, path, format string, args ...any) {
	place := Place{Source: r.file, Line: n.Line, Column: n.Column}
	r.problems = append(r.problems, Problem{Place: place, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) read(n *yaml.Node, path string, depth int) any {
	if r.nodes++; r.full || r.nodes > maxNodes || depth > maxDepth {
		if !r.full {
			r.problem(n, path, "more than %d values, or nested deeper than %d", maxNodes, maxDepth)
		}
		r.full = true
		return nil
	}
	if _, known := r.places[path]; !known && path != "" {
		r.places[path] = Place{Source: r.file, Line: n.Line, Column: n.Column}
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n, path, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			list = append(list, r.read(item, path+"["+strconv.Itoa(i)+"]", depth+1))
		}
		return list
	case yaml.AliasNode:
		return r.read(n.Alias, path, depth+1)
	default:
		return r.scalar(n, path)
	}
}

func (r *reader) mapping(n *yaml.Node, path string, depth int) map[string]any {
	out := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.problem(key, path, "a key must be a text")
			continue
		}
		if key.Tag == "!!merge" {
			r.problem(key, path, "<< is not part of YAML 1.2: write the keys out, or use an alias for the whole value")
			continue
		}
		at := join(path, key.Value)
		if _, twice := out[key.Value]; twice {
			r.problem(key, at, "set twice; first on line %d", r.places[at].Line)
			continue
		}
		r.places[at] = Place{Source: r.file, Line: key.Line, Column: key.Column}
		out[key.Value] = r.read(value, at, depth+1)
	}
	return out
}

func (r *reader) scalar(n *yaml.Node, path string) any {
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if n.Style&yaml.TaggedStyle != 0 {
		switch n.Tag {
		case "!!str":
			quoted = true
		case "!!int", "!!float", "!!bool", "!!null":
		default:
			r.problem(n, path, "the tag %s has no meaning here", n.Tag)
			return nil
		}
	}
	if !quoted {
		if v := plain(n.Value); v != any(n.Value) {
			return v
		}
	}
	text, missing := expand(n.Value, r.env)
	r.expanded[path] = text != n.Value
	for _, name := range missing {
		r.problem(n, path, "the environment variable %s is not set", name)
	}
	return text
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// number is how an override gives a text that should be a number: as one if it is one.
func number(text string) any {
	if n, ok := plain(strings.TrimSpace(text)).(json.Number); ok {
		return n
	}
	return text
}
