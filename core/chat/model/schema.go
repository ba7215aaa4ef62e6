package model

import (
	"encoding/json"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// maxSchemaDepth is the maximum nesting of a schema that models receive. Anything deeper becomes a schema that
// accepts everything.
const maxSchemaDepth = 40

// Besides keywords, SafeSchema can remove these, for providers that reject them.
const (
	TypeLists  = "type[]" // lists of types: the first one is kept
	OtherEnums = "enum[]" // enums of anything but strings
)

// SafeSchema converts a tool's input schema into one that every provider accepts: an object with properties, valid in
// JSON Schema 2020-12. Constraints that are removed are still checked before the tool is called. A schema that needs
// no change is returned byte for byte, and numbers keep their digits. The keywords in without are removed, because some
// providers reject them. A root that is a reference or a combination of schemas gets the properties of all of them.
func SafeSchema(raw json.RawMessage, without ...string) json.RawMessage {
	value, err := rawjson.Decode(raw)
	root, ok := value.(map[string]any)
	c := cleaner{root: root, without: without, changed: err != nil || !ok}
	if root == nil {
		root = map[string]any{}
	}
	c.fixRoot(root)
	if !c.changed {
		return raw
	}
	out, err := rawjson.Encode(root)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

// maxCollected is the maximum number of schemas whose properties are added to a root.
const maxCollected = 200

// cleaner makes a schema valid in place.
type cleaner struct {
	root      map[string]any
	without   []string
	changed   bool
	collected int // schemas whose properties were collected
}

func (c *cleaner) fixRoot(root map[string]any) {
	c.gather(root)
	if root["type"] != "object" {
		root["type"] = "object"
		c.changed = true
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		root["properties"] = map[string]any{}
		c.changed = true
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref", "$schema"} { // providers reject these at the root
		c.remove(root, key)
	}
	c.object(root, 0)
}

// gather adds to the root the properties of the schemas that it refers to or combines, because providers reject these
// keywords at the root.
func (c *cleaner) gather(root map[string]any) {
	if !slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf"}, func(key string) bool { return root[key] != nil }) {
		return
	}
	found, properties := map[string][]any{}, map[string]any{}
	required := c.collect(root, found)
	for name, all := range found {
		if properties[name] = all[0]; len(all) > 1 {
			properties[name] = map[string]any{"anyOf": all}
		}
	}
	if len(properties) > 0 {
		root["properties"], c.changed = properties, true
	}
	if len(required) > 0 {
		root["required"] = required
	}
}

// collect adds the schemas of a schema's properties to found, by name. It returns the names of the required properties.
// Of alternatives, it returns the names that all of them require.
func (c *cleaner) collect(value any, found map[string][]any) (required []any) {
	schema, _ := value.(map[string]any)
	if c.collected++; c.collected > maxCollected {
		return nil
	}
	own, _ := schema["properties"].(map[string]any)
	for name, one := range own {
		if !slices.ContainsFunc(found[name], func(other any) bool { return reflect.DeepEqual(one, other) }) {
			found[name] = append(found[name], one)
		}
	}
	required = slices.DeleteFunc(slices.Clone(listOf(schema["required"])), isNotText)
	all := slices.Clone(listOf(schema["allOf"]))
	if ref, isText := schema["$ref"].(string); isText {
		all = append(all, c.target(ref))
	}
	for _, one := range all {
		required = append(required, c.collect(one, found)...)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var common []any
		for i, one := range listOf(schema[key]) {
			needed := c.collect(one, found)
			if i == 0 {
				common = needed
			}
			common = slices.DeleteFunc(common, func(name any) bool { return !slices.Contains(needed, name) })
		}
		required = append(required, common...)
	}
	return required
}

func isNotText(value any) bool {
	_, isText := value.(string)
	return !isText
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

func (c *cleaner) remove(schema map[string]any, key string) {
	if _, ok := schema[key]; ok {
		delete(schema, key)
		c.changed = true
	}
}

// schema returns a valid schema for a value in a place where a schema is expected. It returns false if the schema
// accepts nothing.
func (c *cleaner) schema(value any, depth int) (any, bool) {
	schema, ok := value.(map[string]any)
	switch {
	case !ok || depth > maxSchemaDepth:
		c.changed = true
		return map[string]any{}, value != false
	default:
		c.object(schema, depth)
		return schema, true
	}
}

func (c *cleaner) object(schema map[string]any, depth int) {
	for _, key := range c.without {
		c.remove(schema, key)
	}
	c.fixRef(schema)
	c.fixType(schema)
	c.fixLimits(schema)
	c.fixText(schema)
	c.fixMaps(schema, depth)
	c.fixRequired(schema)
	c.fixItems(schema, depth)
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		c.fixList(schema, key, depth)
	}
	for _, key := range []string{"not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"} {
		value, ok := schema[key]
		if _, isBool := value.(bool); !ok || isBool {
			continue
		}
		schema[key], _ = c.schema(value, depth+1)
	}
	for _, key := range []string{"extends", "disallow", "additionalItems", "divisibleBy"} { // from drafts 3 and 4
		c.remove(schema, key)
	}
}

// fixRef removes references that cannot be resolved.
func (c *cleaner) fixRef(schema map[string]any) {
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, isText := schema[key].(string)
		if _, ok := schema[key]; ok && (key != "$ref" || !isText || c.target(ref) == nil) {
			c.remove(schema, key)
		}
	}
}

// target returns the schema that a reference refers to, or nil.
func (c *cleaner) target(ref string) map[string]any {
	path, local := strings.CutPrefix(ref, "#")
	if !local || path != "" && path[0] != '/' {
		return nil
	}
	var at any = c.root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		object, _ := at.(map[string]any)
		at = object[step]
	}
	found, _ := at.(map[string]any)
	return found
}

// typeWords maps a type name that tools use to the JSON Schema type. It returns false for an unknown name.
func typeWords(word string) (string, bool) {
	switch strings.ToLower(word) {
	case "string", "str", "text", "date", "datetime", "date-time", "uuid", "uri", "url", "bytes", "file", "char", "enum":
		return "string", true
	case "integer", "int", "int32", "int64", "long", "uint", "short":
		return "integer", true
	case "number", "float", "double", "decimal", "float32", "float64", "numeric":
		return "number", true
	case "boolean", "bool":
		return "boolean", true
	case "object", "dict", "map", "record", "struct", "json":
		return "object", true
	case "array", "list", "tuple", "set":
		return "array", true
	case "null", "none", "nil", "nonetype":
		return "null", true
	default:
		return "", false
	}
}

func (c *cleaner) fixType(schema map[string]any) {
	value, ok := schema["type"]
	if !ok {
		return
	}
	var kept []any
	words, isList := value.([]any)
	if !isList {
		words = []any{value}
	}
	for _, w := range words {
		written, _ := w.(string)
		word, known := typeWords(written)
		if !known || slices.Contains(kept, any(word)) {
			c.changed = true
			continue
		}
		c.changed = c.changed || word != written
		kept = append(kept, word)
	}
	switch {
	case len(kept) == 0:
		c.remove(schema, "type")
	case isList && slices.Contains(c.without, TypeLists):
		schema["type"] = c.firstType(schema, kept)
	case isList:
		schema["type"] = kept
	default:
		schema["type"] = kept[0]
	}
}

// firstType returns the first type that is not null. If the list also contains null, the schema becomes nullable
// (OpenAPI 3.0).
func (c *cleaner) firstType(schema map[string]any, types []any) any {
	c.changed = true
	if n := len(types); n > 1 && slices.Contains(types, any("null")) {
		schema["nullable"] = true
		types = slices.DeleteFunc(types, func(t any) bool { return t == "null" })
	}
	return types[0]
}

// fixLimits fixes the keywords with numeric values.
func (c *cleaner) fixLimits(schema map[string]any) {
	for _, side := range []string{"inimum", "aximum"} {
		limit, exclusive := "m"+side, "exclusiveM"+side
		on, isBool := schema[exclusive].(bool) // as in draft 4
		if !isBool {
			continue
		}
		c.remove(schema, exclusive)
		if value, ok := schema[limit]; ok && on {
			schema[exclusive] = value
			delete(schema, limit)
		}
	}
	if by, ok := schema["divisibleBy"]; ok && schema["multipleOf"] == nil {
		schema["multipleOf"] = by
	}
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		if _, isNumber := schema[key].(json.Number); !isNumber {
			c.remove(schema, key)
		}
	}
	for _, key := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"} {
		if n, _ := schema[key].(json.Number); !isCount(n) {
			c.remove(schema, key)
		}
	}
}

func isCount(n json.Number) bool {
	if len(n) >= 20 || strings.ContainsAny(string(n), "eE") { // an exponent may stand for millions of digits
		return false
	}
	number, ok := new(big.Rat).SetString(n.String())
	return ok && number.IsInt() && number.Sign() >= 0
}

// fixText fixes the keywords with string or boolean values, enum and examples.
func (c *cleaner) fixText(schema map[string]any) {
	for _, key := range []string{"description", "title", "format", "pattern", "$comment", "$id", "id", "$anchor"} {
		text, isText := schema[key].(string)
		if !isText || key == "pattern" && !isPattern(text) {
			c.remove(schema, key)
		}
	}
	for _, key := range []string{"enum", "examples"} {
		if list, ok := schema[key].([]any); !ok || len(list) == 0 {
			c.remove(schema, key)
		}
	}
	ofText := (schema["type"] == nil || schema["type"] == "string") && !slices.ContainsFunc(listOf(schema["enum"]), isNotText)
	if slices.Contains(c.without, OtherEnums) && !ofText {
		c.remove(schema, "enum")
	}
	for _, key := range []string{"deprecated", "readOnly", "writeOnly", "uniqueItems", "nullable"} {
		if _, isBool := schema[key].(bool); !isBool {
			c.remove(schema, key)
		}
	}
}

// unportable matches the parts of a pattern that only some providers accept.
var unportable = regexp.MustCompile(`\\[A-Za-z0-9]|\(\?`)

// isPattern reports whether every provider accepts a pattern. llama.cpp only accepts anchored ones, without classes such
// as \d and without groups such as (?:a).
func isPattern(text string) bool {
	_, err := regexp.Compile(text)
	return err == nil && !unportable.MatchString(text) && strings.HasPrefix(text, "^") && strings.HasSuffix(text, "$") && !strings.HasSuffix(text, `\$`)
}

// fixMaps fixes the keywords whose values map names to schemas.
func (c *cleaner) fixMaps(schema map[string]any, depth int) {
	for _, key := range []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"} {
		value, ok := schema[key]
		if !ok {
			continue
		}
		named, isObject := value.(map[string]any)
		if !isObject {
			c.remove(schema, key)
			continue
		}
		for name, one := range named {
			c.moveRequired(schema, key, name, one)
			fixed, allowed := c.schema(one, depth+1)
			if !allowed {
				delete(named, name)
				continue
			}
			named[name] = fixed
		}
	}
}

// moveRequired moves a property's boolean required (draft 3) to the object's list of required properties.
func (c *cleaner) moveRequired(schema map[string]any, key, name string, property any) {
	own, _ := property.(map[string]any)
	on, isBool := own["required"].(bool)
	if !isBool {
		return
	}
	c.remove(own, "required")
	if list, ok := schema["required"].([]any); on && key == "properties" && (ok || schema["required"] == nil || schema["required"] == true) {
		schema["required"] = append(list, name)
	}
}

func (c *cleaner) fixRequired(schema map[string]any) {
	value, ok := schema["required"]
	if !ok {
		return
	}
	list, isList := value.([]any)
	properties, _ := schema["properties"].(map[string]any)
	kept := make([]any, 0, len(list))
	for _, one := range list {
		name, isText := one.(string)
		if !isText || slices.Contains(kept, one) {
			continue
		}
		kept = append(kept, one)
		if _, known := properties[name]; !known && properties != nil { // Gemini requires a schema for each required property
			properties[name] = map[string]any{}
			c.changed = true
		}
	}
	if isList && len(kept) == len(list) {
		return
	}
	c.changed = true
	if schema["required"] = kept; len(kept) == 0 {
		delete(schema, "required")
	}
}

// fixItems fixes items, which could be a list before 2020-12, and adds items to an array without any.
func (c *cleaner) fixItems(schema map[string]any, depth int) {
	switch items := schema["items"].(type) {
	case nil:
		c.remove(schema, "items")
		if isArray := schema["type"] == "array"; isArray && schema["prefixItems"] == nil {
			schema["items"] = map[string]any{}
			c.changed = true
		}
	case []any:
		c.remove(schema, "items")
		switch len(items) {
		case 0:
			schema["items"] = map[string]any{}
		case 1:
			schema["items"], _ = c.schema(items[0], depth+1)
		default:
			inner := map[string]any{"anyOf": items}
			c.fixList(inner, "anyOf", depth+1)
			schema["items"] = inner
		}
	default:
		schema["items"], _ = c.schema(items, depth+1)
	}
}

func (c *cleaner) fixList(schema map[string]any, key string, depth int) {
	value, ok := schema[key]
	if !ok {
		return
	}
	list, isList := value.([]any)
	if !isList || len(list) == 0 {
		c.remove(schema, key)
		return
	}
	for i, one := range list {
		list[i], _ = c.schema(one, depth+1)
	}
}

// Object returns a tool's input in the form that every provider accepts: {} if it is not an object.
func Object(input json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) != nil || object == nil {
		return json.RawMessage("{}")
	}
	return input
}
