package config

import (
	"bytes"
	_ "embed" // the schema is a file, so that editors and people can read it
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaFile is the one source of truth for the file's keys, types, defaults, enums and
// descriptions. x-wants, where it is set, words what a value must be for a human.
//
//go:embed schema.json
var schemaFile []byte

const schemaID = "urn:ropewalk:config"

// AdapterSchema is the JSON Schema of one built-in adapter's own settings: a self-contained
// object schema. With it, that adapter's settings are checked by Load and known to editors;
// without it, the adapter alone checks them.
type AdapterSchema struct {
	Kind     string // auth, sessionstore or registry
	Adapter  string
	Settings json.RawMessage // nil when the adapter publishes none
}

// schema is the configuration's JSON Schema, raw for looking things up and compiled for checking.
type schema struct {
	root     map[string]any
	compiled *jsonschema.Schema
	adapters []AdapterSchema
}

// Schema returns the JSON Schema (2020-12) of the configuration file, with the settings of the
// given adapters, for editors and for `ropewalk config schema`.
func Schema(adapters []AdapterSchema) (json.RawMessage, error) {
	s, err := newSchema(adapters)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(s.root)
	return out.Bytes(), err
}

func newSchema(adapters []AdapterSchema) (*schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaFile))
	if err != nil {
		return nil, fmt.Errorf("reading the built-in schema: %w", err)
	}
	s := &schema{root: doc.(map[string]any), adapters: adapters}
	for _, a := range adapters {
		if err := s.add(a); err != nil {
			return nil, fmt.Errorf("settings schema of the %s adapter %s: %w", a.Kind, a.Adapter, err)
		}
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaID, s.root); err != nil {
		return nil, err
	}
	s.compiled, err = c.Compile(schemaID)
	return s, err
}

// add makes an adapter's settings part of the schema: if the section is a mapping that names the
// built-in adapter, then its keys are the server's own and the adapter's.
func (s *schema) add(a AdapterSchema) error {
	if a.Settings == nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Settings))
	if err != nil {
		return err
	}
	then, isObject := doc.(map[string]any)
	if !isObject {
		return fmt.Errorf("want a JSON object")
	}
	then = maps.Clone(then)
	delete(then, "$schema")
	delete(then, "$id")
	properties, _ := then["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = make(map[string]any)
	}
	for _, own := range hostKeys(a.Kind) {
		properties[own] = true
	}
	then["properties"] = properties
	section := s.section(a.Kind)
	if section == nil {
		return fmt.Errorf("unknown kind of adapter")
	}
	all, _ := section["allOf"].([]any)
	section["allOf"] = append(all, map[string]any{
		"if": map[string]any{
			"type":       "object",
			"properties": map[string]any{"adapter": map[string]any{"const": a.Adapter}},
			"required":   []any{"adapter"},
			"not":        map[string]any{"required": []any{"path"}}, // another executable, whatever its name
		},
		"then": then,
	})
	return nil
}

// section is the schema of the sections that name adapters of a kind.
func (s *schema) section(kind string) map[string]any {
	properties := s.root["properties"].(map[string]any)
	switch kind {
	case "auth":
		return properties["auth"].(map[string]any)
	case "sessionstore":
		return properties["sessionStore"].(map[string]any)
	case "registry":
		return properties["registries"].(map[string]any)["items"].(map[string]any)
	}
	return nil
}

// hostKeys are the keys of an adapter's section that the server keeps to itself. The rest are
// the adapter's settings.
func hostKeys(kind string) []string {
	switch kind {
	case "auth":
		return []string{"adapter", "path", "sha256", "audience", "admins", "join"}
	case "registry":
		return []string{"name", "adapter", "path", "sha256"}
	}
	return []string{"adapter", "path", "sha256"}
}

// at is the part of the schema that a schema URL such as urn:…#/properties/http points to.
func (s *schema) at(url string) map[string]any {
	_, pointer, _ := strings.Cut(url, "#")
	var here any = s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch node := here.(type) {
		case map[string]any:
			here = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			here = node[i]
		}
	}
	node, _ := here.(map[string]any)
	return node
}

// known are the property names of a part of the schema, sorted.
func known(part map[string]any) []string {
	properties, _ := part["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "$") })
}
