package pasted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// shape is the end of error messages about text that contains no servers.
const shape = `it must be an object such as {"mcpServers": {"files": {"command": "npx", "args": ["-y", "a-package"]}}}`

// Servers returns the server definitions in a client's configuration, by name. It reads JSON with comments and
// trailing commas, a fragment of JSON without the outer braces, TOML and YAML. It also reads what READMEs offer
// instead: links that install a server, commands that add or start one, and URLs. A single definition without a name
// gets the name "".
func Servers(text []byte) (map[string]json.RawMessage, error) {
	text = unfenced(text)
	if len(text) == 0 {
		return nil, errors.New("the input is empty; provide a client's configuration file, such as ~/.cursor/mcp.json, or its text")
	}
	if command := ScriptCommand(string(text)); command != "" {
		return nil, fmt.Errorf("to run a script, paste its command: %s", command)
	}
	c := collector{servers: map[string]json.RawMessage{}}
	document, err := decode(text)
	if c.walk(document, 0); !c.found {
		c.takeShape(document)
	}
	if len(c.servers) == 0 && !errors.Is(err, errDuplicate) {
		err = cmp.Or(c.takeLines(string(text)), err)
	}
	if len(c.servers) == 0 {
		c.takeBlocks(text)
	}
	switch {
	case len(c.servers) == 0 && err != nil:
		return nil, err
	case slices.Contains(c.duplicates, ""):
		return nil, errors.New("several of the definitions have no name: give each one a \"name\"")
	case len(c.duplicates) > 0:
		return nil, fmt.Errorf("the configuration defines %s more than once, with different values; provide only the part with one of the definitions", strings.Join(c.duplicates, ", "))
	case len(c.servers) == 0:
		return nil, fmt.Errorf("it does not name a server: %s", shape)
	}
	return c.servers, nil
}

// block matches a code block in Markdown, and object matches a JSON object between lines of other text.
var (
	block  = regexp.MustCompile("(?ms)^[ \t]*```[^\n]*\n(.*?)^[ \t]*```")
	object = regexp.MustCompile(`(?ms)^[ \t]*(\{.*\})[ \t]*$`)
)

// takeBlocks collects the servers in the code blocks of a README, or in a JSON object between lines of text.
func (c *collector) takeBlocks(text []byte) {
	blocks := block.FindAllSubmatch(text, -1)
	if inner := object.FindSubmatch(text); len(blocks) == 0 && inner != nil && len(inner[1]) < len(text) {
		blocks = append(blocks, inner)
	}
	for _, m := range blocks {
		servers, err := Servers(m[1])
		if err != nil {
			continue // most blocks of a README are about something else
		}
		for name, definition := range servers {
			c.add(name, definition)
		}
	}
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

// decode converts text to JSON. Errors contain the position of the mistake.
func decode(text []byte) (json.RawMessage, error) {
	document, err := decodeJSON(text)
	if err == nil || errors.Is(err, errDuplicate) {
		return document, err
	}
	if loose.Match(text) && !bytes.ContainsRune(text, '\\') { // as in JSON5 and Python, which YAML reads as well
		if document, err := decodeYAML(text); err == nil {
			return document, nil
		}
	}
	switch {
	case strings.ContainsRune(`{"/`, rune(text[0])) || text[0] == '[' && !tomlLine.Match(text):
		return nil, err
	case tomlLine.Match(text):
		document, err = decodeTOML(text)
	default:
		document, err = decodeYAML(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the text is neither JSON nor valid TOML or YAML: %w", err)
	}
	return document, nil
}

// loose matches the beginning of an object whose keys have no quotes, or single ones.
var loose = regexp.MustCompile(`^\{\s*['A-Za-z_]`)

// curly matches the quotation marks that word processors and web pages use instead of straight ones.
var curly = regexp.MustCompile("[“”„]")

// decodeJSON reads JSON with comments and trailing commas, or a fragment of it without the outer braces.
func decodeJSON(text []byte) (json.RawMessage, error) {
	value, err := hujson.Parse(bytes.Clone(text))
	if err != nil && curly.Match(text) {
		text = curly.ReplaceAll(text, []byte(`"`))
		value, err = hujson.Parse(bytes.Clone(text))
	}
	if err != nil {
		wrapped := slices.Concat([]byte("{"), text, []byte("\n}"))
		inner, failed := hujson.Parse(bytes.Clone(wrapped))
		switch {
		case failed == nil:
			text, value, err = wrapped, inner, nil
		case text[0] == '"':
			err = failed
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the text is not JSON: %s%s", strings.TrimPrefix(err.Error(), "hujson: "), remedyFor(text, err))
	}
	if err := checkDuplicates(value, text); err != nil {
		return nil, err
	}
	value.Standardize()
	return value.Pack(), nil
}

// remedyFor returns what to do about common mistakes in JSON.
func remedyFor(text []byte, err error) string {
	switch message := err.Error(); {
	case strings.HasSuffix(message, "unexpected EOF"):
		return "; the end is missing, such as a closing brace"
	case strings.Contains(message, "invalid literal") && bytes.ContainsRune(text, '\\'):
		return `; in JSON, each backslash in a path must be doubled: "C:\\tools"`
	}
	return ""
}

// ScriptCommand returns the command that runs a script, or "" if a text is not the path of one.
func ScriptCommand(path string) string {
	if strings.ContainsAny(path, " \t\n") {
		return ""
	}
	switch filepath.Ext(path) {
	case ".py":
		return "python3 " + path
	case ".js", ".mjs", ".cjs":
		return "node " + path
	}
	return ""
}

var errDuplicate = errors.New("keep one of them")

// checkDuplicates returns an error that wraps errDuplicate if an object has two values for one name. JSON libraries
// silently use the last one.
func checkDuplicates(v hujson.Value, text []byte) error {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		if array, ok := v.Value.(*hujson.Array); ok {
			for _, element := range array.Elements {
				if err := checkDuplicates(element, text); err != nil {
					return err
				}
			}
		}
		return nil
	}
	seen := map[string]hujson.Value{}
	for _, member := range object.Members {
		name := member.Name.Value.(hujson.Literal).String()
		if before, ok := seen[name]; ok && !bytes.Equal(packed(before), packed(member.Value)) {
			return fmt.Errorf("%.100q is given twice with different values, on line %d and line %d: %w", name, lineOf(text, before), lineOf(text, member.Value), errDuplicate)
		}
		seen[name] = member.Value
		if err := checkDuplicates(member.Value, text); err != nil {
			return err
		}
	}
	return nil
}

func packed(v hujson.Value) []byte {
	v = v.Clone()
	v.Minimize()
	return v.Pack()
}

func lineOf(text []byte, v hujson.Value) int {
	return 1 + bytes.Count(text[:v.StartOffset], []byte("\n"))
}

func decodeTOML(text []byte) (json.RawMessage, error) {
	var document any
	if err := toml.Unmarshal(text, &document); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := at.Position()
			return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
		}
		return nil, err
	}
	return encode(document)
}

// decodeYAML reads one or more YAML documents.
func decodeYAML(text []byte) (json.RawMessage, error) {
	var all []any
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, document)
	}
	if len(all) == 1 {
		return encode(all[0])
	}
	return encode(all)
}

func encode(document any) (json.RawMessage, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("the text has keys that are not text: %w", err)
	}
	return raw, nil
}

type collector struct {
	servers    map[string]json.RawMessage
	duplicates []string // names that have several different definitions
	found      bool     // whether the document has a key under which clients list their servers

	around map[string]json.RawMessage // the object that contains the servers that are being taken
}

// maxDepth limits how deep the search for servers goes. Some clients nest them under projects.
const maxDepth = 6

// walk collects the servers under every key that clients use for them.
func (c *collector) walk(raw json.RawMessage, depth int) {
	for _, element := range list(raw) {
		if depth < maxDepth && !isServer(fields(element)) {
			c.walk(element, depth+1)
		}
	}
	object := fields(raw)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if containsServers(key, value) {
			c.found, c.around = true, object
			c.take(value)
			c.around = nil
		} else if depth < maxDepth && !isServer(fields(value)) {
			c.walk(value, depth+1)
		}
	}
}

// containsServers reports whether the value of a key is a client's set of servers.
func containsServers(key string, value json.RawMessage) bool {
	object := fields(value)
	if isServer(object) {
		return false // it is a single server with that name
	}
	name := canonical(key[strings.LastIndexByte(key, '.')+1:])
	switch name {
	case "mcpservers", "contextservers", "modelcontextprotocolservers", "stdioservers", "sseservers", "shttpservers":
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
		switch address := text(value); {
		case address != "":
			c.takeFields("", map[string]any{"url": address})
		case !isServer(fields(value)) && containsServers("servers", value):
			c.take(value)
		default:
			c.add(nameIn(value), value)
		}
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
	definition = within(c.around, name, definition)
	before, ok := c.servers[name]
	if ok && !slices.Contains(c.duplicates, name) && !sameJSON(before, definition) {
		c.duplicates = append(c.duplicates, name)
	}
	c.servers[name] = definition
}

func sameJSON(a, b json.RawMessage) bool {
	var one, other bytes.Buffer
	return json.Compact(&one, a) == nil && json.Compact(&other, b) == nil && bytes.Equal(one.Bytes(), other.Bytes())
}

// nameIn returns the name that a definition contains, or "".
func nameIn(raw json.RawMessage) string {
	object := fields(raw)
	return cmp.Or(text(object["name"]), text(object["server_label"]), text(object["label"]), text(object["uses"]))
}

// isServer reports whether an object is the definition of a server.
func isServer(object map[string]json.RawMessage) bool {
	for key, value := range object {
		switch canonical(key) {
		case "command", "cmd":
			if text(value) != "" || len(list(value)) > 0 || text(fields(value)["path"]) != "" {
				return true
			}
		case "url", "serverurl", "httpurl", "baseurl", "uri":
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
