package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// Field is one value that a bundle asks its operator for.
type Field struct {
	Type        string          `json:"type"` // string, number, boolean, directory or file
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default"`
	Multiple    bool            `json:"multiple"` // several values, each its own argument
	Sensitive   bool            `json:"sensitive"`
	Min         *float64        `json:"min"` // for numbers
	Max         *float64        `json:"max"`
}

// MissingValue is one required value that was not supplied, in the format of details.missing (docs/api.md 3).
type MissingValue struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Sensitive   bool   `json:"sensitive"`
}

// fieldKey ensures that a key can be used inside ${user_config.KEY}.
var fieldKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func (f Field) check(c *checker, at string) {
	if key := strings.TrimPrefix(at, "user_config."); !fieldKey.MatchString(key) {
		c.add(at, "must be named with only letters, digits and _ . -")
	}
	switch f.Type {
	case "string", "number", "boolean", "directory", "file":
	default:
		c.add(at+".type", "is %q; it must be string, number, boolean, directory or file", f.Type)
		return
	}
	values, ok := f.defaults()
	if !ok {
		c.add(at+".default", "must be a %s, or a list of them if multiple is true", f.Type)
	}
	for _, v := range values {
		if why := f.reject(v); why != "" {
			c.add(at+".default", "%s", why)
		}
	}
}

// defaults returns the values of the default as text, or none if there is no default.
func (f Field) defaults() (values []string, ok bool) {
	raw := strings.TrimSpace(string(f.Default))
	if raw == "" || raw == "null" {
		return nil, true
	}
	if !strings.HasPrefix(raw, "[") {
		v, ok := scalar(json.RawMessage(raw))
		return []string{v}, ok
	}
	var list []json.RawMessage
	if !f.Multiple || json.Unmarshal(f.Default, &list) != nil {
		return nil, false
	}
	return scalars(list)
}

func scalars(list []json.RawMessage) (values []string, ok bool) {
	for _, item := range list {
		v, ok := scalar(item)
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

// scalar returns a JSON string, number or boolean as text; numbers remain as written.
func scalar(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil && strings.HasPrefix(string(raw), `"`) {
		return s, true
	}
	text := strings.TrimSpace(string(raw))
	if text == "true" || text == "false" {
		return text, true
	}
	_, err := strconv.ParseFloat(text, 64)
	return text, err == nil
}

// reject returns why a value is not valid for the field; "" if it is valid. It never quotes the value.
func (f Field) reject(value string) string {
	switch f.Type {
	case "number":
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
			return "must be a number"
		case f.Min != nil && n < *f.Min:
			return fmt.Sprintf("must be at least %v", *f.Min)
		case f.Max != nil && n > *f.Max:
			return fmt.Sprintf("must be at most %v", *f.Max)
		}
	case "boolean":
		if value != "true" && value != "false" {
			return "must be true or false"
		}
	}
	if strings.ContainsRune(value, 0) {
		return "must not contain a NUL byte"
	}
	return ""
}

// splitValue splits a supplied value: for a field with several values, a JSON array is split into its elements;
// everything else is one value.
func (f Field) splitValue(value core.Secret) []string {
	var list []json.RawMessage
	if text := value.Reveal(); f.Multiple && json.Unmarshal([]byte(text), &list) == nil && list != nil {
		if values, ok := scalars(list); ok {
			return values
		}
	}
	return []string{value.Reveal()}
}

// Missing lists the required user_config fields, by key, that are supplied neither by values nor by a default.
// The names of values are explained in the package comment; an empty value is treated as not supplied.
func (m *Manifest) Missing(values map[string]core.Secret) []MissingValue {
	supplied, _ := m.split(values)
	var missing []MissingValue
	for _, key := range slices.Sorted(maps.Keys(m.UserConfig)) {
		f := m.UserConfig[key]
		if defaults, _ := f.defaults(); !f.Required || supplied[key] != "" || len(defaults) > 0 {
			continue
		}
		missing = append(missing, MissingValue{key, f.Title, f.Description, f.Sensitive})
	}
	return missing
}

// Supplied reports for each user_config field, by key, whether values supply it, under its own name or as the
// environment variable that the bundle reads.
func (m *Manifest) Supplied(values map[string]core.Secret) map[string]bool {
	fields, _ := m.split(values)
	supplied := make(map[string]bool, len(m.UserConfig))
	for key := range m.UserConfig {
		supplied[key] = fields[key] != ""
	}
	return supplied
}

// split separates the values of an installation into user_config fields, by key, and environment variables (see the
// package comment). For a field, its exact key takes precedence over the variable that the manifest passes it to,
// which in turn takes precedence over the UPPER_SNAKE form. A variable that the manifest fills from the field is left
// to the manifest.
func (m *Manifest) split(values map[string]core.Secret) (fields, environ map[string]core.Secret) {
	fields, environ = map[string]core.Secret{}, map[string]core.Secret{}
	for name, value := range values {
		if _, ok := m.UserConfig[name]; ok {
			fields[name] = value
		} else {
			environ[name] = value
		}
	}
	others, aliases := maps.Clone(environ), m.aliases()
	for key := range m.UserConfig {
		for _, name := range aliases[key] {
			if fields[key] == "" && others[name] != "" {
				fields[key] = others[name]
				delete(environ, name)
			}
		}
		if value := others[upperSnake(key)]; fields[key] == "" && value != "" {
			fields[key] = value
		}
	}
	return fields, environ
}

// aliases returns, by user_config key, the names of the environment variables to which the manifest passes
// exactly that field.
func (m *Manifest) aliases() map[string][]string {
	found := map[string][]string{}
	if m.Server.MCPConfig == nil {
		return found
	}
	env := m.Server.MCPConfig.Env
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if key, ok := wholeField(env[name]); ok {
			found[key] = append(found[key], name)
		}
	}
	return found
}

var (
	camel    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	notSnake = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// upperSnake converts apiKey, api-key and api_key to API_KEY.
func upperSnake(key string) string {
	return strings.ToUpper(notSnake.ReplaceAllString(camel.ReplaceAllString(key, "${1}_${2}"), "_"))
}

// GrantedPaths returns the directories and files that the installer entered in fields of these types. It
// excludes defaults, which the manifest chooses.
func (m *Manifest) GrantedPaths(values map[string]core.Secret) []string {
	fields, _ := m.split(values)
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(m.UserConfig)) {
		f := m.UserConfig[key]
		if f.Type != "directory" && f.Type != "file" || fields[key] == "" {
			continue
		}
		paths = append(paths, f.splitValue(fields[key])...)
	}
	return paths
}
