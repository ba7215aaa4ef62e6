package pasted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// shape ends the error messages about text that contains no servers.
const shape = `it must be an object such as {"mcpServers": {"files": {"command": "npx", "args": ["-y", "a-package"]}}}`

// Servers returns the server definitions in a client's configuration, by name. It reads JSON with comments and trailing
// commas, a fragment of JSON without the outer braces, TOML and YAML. A single definition without a name gets the name
// "".
func Servers(text []byte) (map[string]json.RawMessage, error) {
	text = unfenced(text)
	if len(text) == 0 {
		return nil, errors.New("the input is empty: give the file of a client's configuration, such as ~/.cursor/mcp.json, or its text")
	}
	document, err := decode(text)
	if err != nil {
		return nil, err
	}
	c := collector{servers: map[string]json.RawMessage{}}
	c.walk(document, 0)
	if !c.found {
		c.takeShape(document)
	}
	switch {
	case len(c.twice) > 0:
		return nil, fmt.Errorf("the configuration defines %s more than once, each time differently: give only the part with one of the definitions", strings.Join(c.twice, ", "))
	case len(c.servers) == 0:
		return nil, fmt.Errorf("it does not name a server: %s", shape)
	}
	return c.servers, nil
}

// unfenced removes a byte order mark and the fence of a Markdown code block.
func unfenced(text []byte) []byte {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if rest, ok := bytes.CutPrefix(text, []byte("```")); ok {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
		text = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("```")))
	}
	return text
}

// tomlLine matches a line of a TOML document: a table header, or a key and its value.
var tomlLine = regexp.MustCompile(`(?m)^[ \t]*(\[\[?[A-Za-z0-9_."' -]+\]\]?[ \t]*(#.*)?$|[A-Za-z0-9_."-]+[ \t]*=)`)

// decode converts text to JSON.
func decode(text []byte) (json.RawMessage, error) {
	document, err := hujson.Standardize(bytes.Clone(text))
	if err == nil {
		return document, nil
	}
	if wrapped, failed := hujson.Standardize(slices.Concat([]byte("{"), text, []byte("\n}"))); failed == nil {
		return wrapped, nil
	}
	var other any
	switch {
	case text[0] == '{' || text[0] == '"' || text[0] == '/':
		return nil, fmt.Errorf("the text is not JSON: %w", err)
	case tomlLine.Match(text):
		err = toml.Unmarshal(text, &other)
	default:
		err = yaml.Unmarshal(text, &other)
	}
	if err != nil {
		return nil, fmt.Errorf("the text is neither JSON nor valid TOML or YAML: %w", err)
	}
	if document, err = json.Marshal(other); err != nil {
		return nil, fmt.Errorf("the text has keys that are not text: %w", err)
	}
	return document, nil
}

type collector struct {
	servers map[string]json.RawMessage
	twice   []string // names that have several different definitions
	found   bool     // whether the document has a key under which clients list their servers
}

// maxDepth limits how deep the search for servers goes. Some clients nest them under projects.
const maxDepth = 6

// walk collects the servers under every key that clients use for them.
func (c *collector) walk(raw json.RawMessage, depth int) {
	object := fields(raw)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if holdsServers(key, value) {
			c.found = true
			c.take(value)
		} else if depth < maxDepth && !isServer(fields(value)) {
			c.walk(value, depth+1)
		}
	}
}

// holdsServers reports whether the value of a key is a client's set of servers.
func holdsServers(key string, value json.RawMessage) bool {
	object := fields(value)
	if isServer(object) {
		return false // it is a single server with that name
	}
	name := canonical(key[strings.LastIndexByte(key, '.')+1:])
	switch name {
	case "mcpservers", "contextservers", "modelcontextprotocolservers":
		return true
	case "servers", "mcp", "extensions":
		return slices.ContainsFunc(list(value), func(v json.RawMessage) bool { return isServer(fields(v)) }) ||
			slices.ContainsFunc(slices.Collect(maps.Values(object)), func(v json.RawMessage) bool { return isServer(fields(v)) })
	}
	return false
}

// take collects all definitions in an object, or in a list of objects with names.
func (c *collector) take(raw json.RawMessage) {
	for _, value := range list(raw) {
		c.add(nameIn(value), value)
	}
	for name, value := range fields(raw) {
		c.add(name, value)
	}
}

// takeShape collects everything that looks like a server, in a document without a key for servers.
func (c *collector) takeShape(document json.RawMessage) {
	if isServer(fields(document)) {
		c.add(nameIn(document), document)
		return
	}
	for _, value := range list(document) {
		if isServer(fields(value)) {
			c.add(nameIn(value), value)
		}
	}
	for name, value := range fields(document) {
		if fields(value) != nil {
			c.add(name, value)
		}
	}
}

func (c *collector) add(name string, definition json.RawMessage) {
	before, ok := c.servers[name]
	if ok && !slices.Contains(c.twice, name) && !sameJSON(before, definition) {
		c.twice = append(c.twice, name)
	}
	c.servers[name] = definition
}

func sameJSON(a, b json.RawMessage) bool {
	var one, other bytes.Buffer
	return json.Compact(&one, a) == nil && json.Compact(&other, b) == nil && bytes.Equal(one.Bytes(), other.Bytes())
}

// nameIn returns the name that a definition contains, or "".
func nameIn(raw json.RawMessage) string {
	return text(fields(raw)["name"])
}

// isServer reports whether an object is the definition of a server.
func isServer(object map[string]json.RawMessage) bool {
	for key, value := range object {
		switch canonical(key) {
		case "command", "cmd":
			if text(value) != "" || len(list(value)) > 0 || text(fields(value)["path"]) != "" {
				return true
			}
		case "url", "serverurl", "httpurl", "uri":
			if text(value) != "" {
				return true
			}
		case "transport":
			if isServer(fields(value)) {
				return true
			}
		}
	}
	return false
}

// canonical returns a key without spelling differences: disabledTools, disabled_tools and disabled-tools are the same.
func canonical(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

// fields returns the fields of an object. It returns nil for any other value.
func fields(raw json.RawMessage) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object
}

// list returns the elements of an array. It returns nil for any other value.
func list(raw json.RawMessage) []json.RawMessage {
	var array []json.RawMessage
	if json.Unmarshal(raw, &array) != nil {
		return nil
	}
	return array
}

// text returns a string. It returns "" for any other value.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
