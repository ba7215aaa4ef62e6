package schema

import (
	"bytes"
	_ "embed" // the schema is a file, so that editors and people can read it
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaFile is the single source of truth for the file's keys, types, defaults, enums and descriptions.
// x-wants, if set, describes in prose what a value must be.
//
//go:embed schema.json
var schemaFile []byte

const schemaID = "urn:ropewalk:config"

// Adapter is the JSON Schema of one built-in adapter's own settings: a self-contained object schema. If it is
// present, Load checks the adapter's settings and editors can complete them; otherwise only the adapter checks them.
type Adapter struct {
	Kind     string // a kind of plugin, such as "auth"
	Name     string
	Settings json.RawMessage // nil if the adapter publishes none
}

// Schema is the configuration's JSON Schema, raw for lookups and compiled for validation.
type Schema struct {
	root     map[string]any
	compiled *jsonschema.Schema
	adapters []Adapter
}

// JSON returns the JSON Schema (2020-12) of the configuration file, with the settings of the adapters,
// for editors and for `ropewalk config schema`.
func (s *Schema) JSON() (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s.root)
	return out.Bytes(), err
}

// New returns the schema with the settings of the given adapters.
func New(adapters []Adapter) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaFile))
	if err != nil {
		return nil, fmt.Errorf("reading the built-in schema: %w", err)
	}
	s := &Schema{root: doc.(map[string]any), adapters: adapters}
	for _, a := range adapters {
		if err := s.add(a); err != nil {
			return nil, fmt.Errorf("settings schema of the %s adapter %s: %w", a.Kind, a.Name, err)
		}
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaID, s.root); err != nil {
		return nil, err
	}
	s.compiled, err = c.Compile(schemaID)
	return s, err
}

// add adds an adapter's settings to the schema: if the section is a mapping that names the built-in adapter,
// its keys are the server's own plus the adapter's.
func (s *Schema) add(a Adapter) error {
	if a.Settings == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Settings))
	if err != nil {
		return err
	}
	then, isObject := doc.(map[string]any)
	if !isObject {
		return fmt.Errorf("must be a JSON object")
	}
	then = maps.Clone(then)
	delete(then, "$schema")
	delete(then, "$id")
	properties, _ := then["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = make(map[string]any)
	}
	for _, own := range HostKeys(a.Kind) {
		properties[own] = true
	}
	then["properties"] = properties
	section := s.Section(a.Kind)
	if section == nil {
		return fmt.Errorf("unknown kind of adapter")
	}
	all, _ := section["allOf"].([]any)
	section["allOf"] = append(all, map[string]any{
		"if": map[string]any{
			"type":       "object",
			"properties": map[string]any{"adapter": map[string]any{"const": a.Name}},
			"required":   []any{"adapter"},
			"not":        map[string]any{"required": []any{"path"}}, // another executable, whatever its name
		},
		"then": then,
	})
	return nil
}

// Section returns the schema of the sections for adapters of a kind.
func (s *Schema) Section(kind string) map[string]any {
	properties := s.root["properties"].(map[string]any)
	switch kind {
	case "auth":
		return properties["auth"].(map[string]any)
	case "sessionstore":
		return properties["sessionStore"].(map[string]any)
	case "registry":
		return properties["registries"].(map[string]any)["items"].(map[string]any)
	case "audit":
		sinks := properties["audit"].(map[string]any)["properties"].(map[string]any)["sinks"].(map[string]any)
		return sinks["items"].(map[string]any)
	}
	return nil
}

// HostKeys returns the keys of an adapter's section that belong to the server. The rest are the adapter's
// settings.
func HostKeys(kind string) []string {
	switch kind {
	case "auth":
		return []string{"adapter", "path", "sha256", "name", "audience", "admins", "join", "sameAs", "recheckSeconds"}
	case "registry", "audit":
		return []string{"name", "adapter", "path", "sha256"}
	}
	return []string{"adapter", "path", "sha256"}
}

// At returns the part of the schema that a schema URL such as urn:…#/properties/http refers to.
func (s *Schema) At(url string) map[string]any {
	_, pointer, _ := strings.Cut(url, "#")
	var location []string
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if step != "" {
			location = append(location, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
		}
	}
	node, _ := lookup(s.root, location).(map[string]any)
	return node
}

// Known returns the property names in a part of the schema, sorted.
func Known(part map[string]any) []string {
	properties, _ := part["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "$") })
}

// Builtins returns the names of the built-in adapters of a kind, sorted.
func (s *Schema) Builtins(kind string) []string {
	var names []string
	for _, a := range s.adapters {
		if a.Kind == kind {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}
