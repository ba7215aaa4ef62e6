package apidocs

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is the part of an OpenAPI document that appears on the page.
type document struct {
	Info struct {
		Title       string
		Description string
	}
	Tags []struct {
		Name        string
		Description string
	}
	Paths      map[string]yaml.Node
	Components struct {
		Schemas    map[string]yaml.Node
		Responses  map[string]response
		Parameters map[string]parameter
	}
}

type operation struct {
	Tags        []string
	OperationID string `yaml:"operationId"`
	Summary     string
	Description string
	Parameters  []parameter
	RequestBody struct{ Content content } `yaml:"requestBody"`
	Responses   map[string]response
}

type parameter struct {
	Ref         string `yaml:"$ref"`
	Name        string
	In          string
	Required    bool
	Description string
	Schema      yaml.Node
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Content     content
}

// content maps media types to bodies.
type content map[string]struct{ Schema yaml.Node }

// methods returns the keys in a path that are operations, in the order in which the page lists them.
func methods() []string { return []string{"get", "post", "put", "patch", "delete"} }

// page is the data for page.html.
type page struct {
	Title, Description string
	Groups             []group
	Schemas            []body
}

type group struct {
	Name, Description string
	Operations        []shown
}

type shown struct {
	ID, Method, Path, Summary, Description string
	Parameters                             []argument
	Bodies                                 []body
	Responses                              []outcome
}

type argument struct {
	Name, In, Schema, Description string
	Required                      bool
}

type body struct{ Type, Schema string }

type outcome struct {
	Status, Description string
	Bodies              []body
}

// pageOf converts a document into the data for the page. References to parameters and responses are resolved.
// References to schemas are kept in the form $ref: Name.
func pageOf(raw []byte) (page, error) {
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return page{}, err
	}
	p := page{Title: d.Info.Title, Description: d.Info.Description}
	at := map[string]int{}
	for _, tag := range d.Tags {
		at[tag.Name] = len(p.Groups)
		p.Groups = append(p.Groups, group{Name: tag.Name, Description: tag.Description})
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		var operations map[string]yaml.Node
		node := d.Paths[path]
		if err := node.Decode(&operations); err != nil {
			return page{}, err
		}
		for _, method := range methods() {
			node, ok := operations[method]
			if !ok {
				continue
			}
			var o operation
			if err := node.Decode(&o); err != nil {
				return page{}, err
			}
			for _, tag := range o.Tags {
				g := &p.Groups[at[tag]]
				g.Operations = append(g.Operations, d.show(method, path, o))
			}
		}
	}
	p.Schemas = bodies(d.Components.Schemas, func(n yaml.Node) yaml.Node { return n })
	return p, nil
}

func (d document) show(method, path string, o operation) shown {
	s := shown{ID: o.OperationID, Method: strings.ToUpper(method), Path: path, Summary: o.Summary, Description: o.Description}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[nameOf(p.Ref)]
		}
		s.Parameters = append(s.Parameters, argument{p.Name, p.In, text(p.Schema), p.Description, p.Required})
	}
	s.Bodies = o.RequestBody.Content.bodies()
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if r.Ref != "" {
			r = d.Components.Responses[nameOf(r.Ref)]
		}
		s.Responses = append(s.Responses, outcome{status, r.Description, r.Content.bodies()})
	}
	return s
}

func (c content) bodies() []body {
	return bodies(c, func(m struct{ Schema yaml.Node }) yaml.Node { return m.Schema })
}

func bodies[V any](of map[string]V, schema func(V) yaml.Node) []body {
	var all []body
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, body{name, text(schema(of[name]))})
	}
	return all
}

// nameOf returns the last segment of a reference.
func nameOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// text returns a schema as YAML, with references shortened to names. It returns "" if there is no schema.
func text(n yaml.Node) string {
	if n.IsZero() {
		return ""
	}
	raw, err := yaml.Marshal(&n)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(raw), "#/components/schemas/", ""))
}
