package layer

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	maxNodes = 100_000 // values in the file; an alias counts each time it is used
	maxDepth = 64
)

// reader turns YAML nodes into the values that the JSON Schema describes.
type reader struct {
	*Layer
	file  string
	env   map[string]string
	nodes int
	full  bool // a limit was reached, so the rest is not read
}

// ReadYAML reads a file's text. Errors are in the layer's problems.
func ReadYAML(file string, text []byte, env map[string]string) *Layer {
	r := &reader{Layer: New(), file: file, env: env}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return r.Layer // an empty file, or only comments
	}
	if err != nil {
		r.syntax(string(text))
		return r.Layer
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			r.syntax(string(text))
		} else {
			r.problem(&second, "", "there is a second document; the configuration must be a single document")
		}
	}
	switch root := r.read(doc.Content[0], "", 0).(type) {
	case nil:
	case map[string]any:
		r.Value = root
	default:
		r.problem(doc.Content[0], "", "must be a mapping of settings")
	}
	return r.Layer
}

func (r *reader) problem(n *yaml.Node, path, format string, args ...any) {
	place := Place{Source: r.file, Line: n.Line, Column: n.Column}
	r.Problems = append(r.Problems, Problem{Place: place, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) read(n *yaml.Node, path string, depth int) any {
	if r.nodes++; r.full || r.nodes > maxNodes || depth > maxDepth {
		if !r.full {
			r.problem(n, path, "there are more than %d values, or they are nested more than %d levels deep", maxNodes, maxDepth)
		}
		r.full = true
		return nil
	}
	if _, known := r.Places[path]; !known && path != "" {
		r.Places[path] = Place{Source: r.file, Line: n.Line, Column: n.Column}
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
			r.problem(key, path, "a key must be a string")
			continue
		}
		if key.Tag == "!!merge" {
			r.problem(key, path, "<< is not part of YAML 1.2; write the keys out, or use an alias for the whole value")
			continue
		}
		at := Join(path, key.Value)
		if _, twice := out[key.Value]; twice {
			r.problem(key, at, "set twice; first on line %d", r.Places[at].Line)
			continue
		}
		r.Places[at] = Place{Source: r.file, Line: key.Line, Column: key.Column}
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
			r.problem(n, path, "the tag %s is not allowed here", n.Tag)
			return nil
		}
	}
	if !quoted {
		if v := Plain(n.Value); v != any(n.Value) {
			return v
		}
	}
	text, missing := expand(n.Value, r.env)
	r.Expanded[path] = text != n.Value
	for _, name := range missing {
		r.problem(n, path, "the environment variable %s is not set", name)
		r.Problems[len(r.Problems)-1].Variable = name
	}
	return text
}
