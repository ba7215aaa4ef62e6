package pasted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxToolPatterns = 500
	maxToolPattern  = 200 // characters
)

// Definition is one server as a client's configuration defines it. Exactly one of Command and URL is set.
type Definition struct {
	Command string
	Args    []string
	Env     map[string]string

	URL       string
	Transport string // "streamable-http" or "sse"; "" to detect it
	Headers   map[string]string

	Inputs []Input  // values that the configuration refers to but does not contain
	Left   []string // unrecognized keys, sorted

	Tools *core.ToolFilter // the tools that the client uses; nil for all
}

// Disabled is the error for a server that its client has disabled.
type Disabled struct{ Key string }

func (d *Disabled) Error() string {
	return fmt.Sprintf("is disabled in this configuration: remove `%s` to install it", d.Key)
}

// reader reads the fields of one definition.
type reader struct {
	Definition
	given map[string]string // values of inputs, by name
	err   error             // the first error
}

// Read reads the definition of one server. given holds the values of its inputs by name. An input that has neither a
// given value nor a default is listed in Inputs with Missing set; the rest of the Definition must not be used in that
// case. Error messages continue a sentence that starts with the location of the definition, and they never contain a
// value.
func Read(name string, raw json.RawMessage, given map[string]string) (Definition, error) {
	if err := checkName(name); err != nil {
		return Definition{}, err
	}
	object := fields(raw)
	if object == nil {
		return Definition{}, errors.New(": it is not an object")
	}
	r := reader{given: given}
	r.Env, r.Headers = map[string]string{}, map[string]string{}
	r.fields(object)
	if r.err != nil {
		return Definition{}, r.err
	}
	if (r.Command == "") == (r.URL == "") {
		return Definition{}, errors.New(": give exactly one of command and url")
	}
	r.unwrap()
	if err := r.ask(); err != nil {
		return Definition{}, err
	}
	slices.Sort(r.Left)
	return r.Definition, nil
}

func checkName(name string) error {
	if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }) {
		return errors.New(": its name contains unprintable characters: give it another name")
	}
	if strings.EqualFold(path.Base(strings.TrimSpace(name)), "system") {
		return errors.New(": the name system is reserved for the server's own tools: give it another name")
	}
	return nil
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// fields reads the fields of an object, which may be nested in the definition.
func (r *reader) fields(object map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if value := object[key]; string(value) != "null" {
			r.field(key, value)
		}
	}
}

func (r *reader) field(key string, value json.RawMessage) {
	name := canonical(key)
	if isToolFilter(name) {
		r.toolFilter(key, value)
		return
	}
	switch name {
	case "command", "cmd":
		r.command(key, value)
	case "args", "arguments":
		r.Args = append(r.Args, r.texts(key, value)...)
	case "env", "environment", "envs":
		r.pairs(key, value, r.Env)
	case "envkeys", "envvars":
		for _, variable := range list(value) {
			if v := text(variable) + text(fields(variable)["name"]); v != "" {
				r.Env[v] = "${" + v + "}"
			}
		}
	case "url", "serverurl", "httpurl", "uri":
		r.URL = text(value)
	case "type", "transport", "transporttype":
		if nested := fields(value); nested != nil {
			r.fields(nested)
		} else {
			r.transport(key, text(value))
		}
	case "headers", "httpheaders":
		r.pairs(key, value, r.Headers)
	case "requestoptions", "requestinit":
		r.fields(fields(value))
	case "envhttpheaders":
		for header, variable := range fields(value) {
			r.Headers[header] = "${" + text(variable) + "}"
		}
	case "bearertokenenvvar":
		r.Headers["Authorization"] = "Bearer ${" + text(value) + "}"
	default:
		r.other(key, value)
	}
}

// other reads the remaining fields, including those that say whether and where a client runs a server.
func (r *reader) other(key string, value json.RawMessage) {
	word, _ := scalar(value)
	isTrue, isFalse := strings.EqualFold(word, "true"), strings.EqualFold(word, "false")
	switch canonical(key) {
	case "disabled":
		if !isFalse {
			r.disable(key)
		}
	case "enabled", "active", "isactive", "isenabled":
		if !isTrue {
			r.disable(key)
		}
	case "envfile":
		r.fail(".%s is a file on the client's machine: give its variables as env", key)
	case "cwd", "workingdirectory", "workdir":
		r.fail(".%s is a folder on the client's machine: remove it, and use absolute paths on the server's machine in args", key)
	case "name", "description", "source", "settings", "bundled", "title", "displayname", "icon", "id", "$schema", "version":
	default:
		if len(fields(value)) > 0 || len(list(value)) > 0 || fields(value) == nil && list(value) == nil {
			r.Left = append(r.Left, key)
		}
	}
}

func (r *reader) disable(key string) {
	if r.err == nil {
		r.err = &Disabled{Key: key}
	}
}

// command reads a command: a string, a list that includes the arguments, or the object form of older clients.
func (r *reader) command(key string, value json.RawMessage) {
	if object := fields(value); object != nil {
		r.Command = text(object["path"])
		delete(object, "path")
		r.fields(object)
		return
	}
	words := []string{text(value)}
	if array := list(value); array != nil {
		words = r.texts(key, value)
	}
	if len(words) == 0 || words[0] == "" {
		r.fail(".%s is neither a string nor a list of strings", key)
		return
	}
	r.Command, r.Args = words[0], append(words[1:], r.Args...)
}

// texts reads a list of strings. Numbers and booleans count as strings, and a single value as a list of one.
func (r *reader) texts(key string, value json.RawMessage) (words []string) {
	array := list(value)
	if array == nil {
		array = []json.RawMessage{value}
	}
	for i, element := range array {
		word, ok := scalar(element)
		if !ok {
			r.fail(".%s[%d] is neither a text nor a number", key, i)
		}
		words = append(words, word)
	}
	return words
}

// pairs reads an object of strings, or a list of NAME=VALUE strings or of objects with name and value.
func (r *reader) pairs(key string, value json.RawMessage, into map[string]string) {
	object := fields(value)
	for _, element := range list(value) {
		if object == nil {
			object = map[string]json.RawMessage{}
		}
		if name, v, ok := strings.Cut(text(element), "="); ok {
			object[name], _ = json.Marshal(v)
		} else if pair := fields(element); text(pair["name"]) != "" {
			object[text(pair["name"])] = pair["value"]
		} else {
			r.fail(".%s: an entry is neither NAME=VALUE nor an object with a name and a value", key)
		}
	}
	if object == nil && list(value) == nil {
		r.fail(".%s is not an object", key)
	}
	for name, element := range object {
		if string(element) == "null" {
			continue
		}
		v, ok := scalar(element)
		if !ok {
			r.fail(".%s.%s is neither a text nor a number", key, name)
		}
		into[name] = v
	}
}

// scalar returns a string, number or boolean as text. It reports false for other values.
func scalar(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, string(raw) != "null"
	}
	return string(raw), fields(raw) == nil && list(raw) == nil
}

// transport reads the transport type of a server.
func (r *reader) transport(key, kind string) {
	switch canonical(kind) {
	case "http", "streamablehttp", "httpstream":
		r.Transport = "streamable-http"
	case "sse":
		r.Transport = "sse"
	case "", "stdio", "local", "remote", "custom":
	case "builtin", "platform":
		r.fail(".%s: %.50s is built into the client and has no command or url", key, kind)
	default:
		r.fail(".%s is %.50q; it can be stdio, http or sse", key, kind)
	}
}

// isToolFilter reports whether a key limits which tools of a server are used.
func isToolFilter(name string) bool {
	if !strings.Contains(name, "tool") {
		return false
	}
	for _, other := range []string{"timeout", "approv", "confirm", "alwaysallow", "trust", "calllimit", "maxtool", "prefix"} {
		if strings.Contains(name, other) {
			return false
		}
	}
	return true
}

// toolFilter reads a field that limits the tools of a server: a list of names, a switch for each name, a switch for all
// tools, or an object with several of these.
func (r *reader) toolFilter(key string, value json.RawMessage) {
	without := excludes(canonical(key))
	object, array := fields(value), list(value)
	switch word, _ := scalar(value); {
	case object != nil:
		r.toolSwitches(key, object)
	case array != nil:
		r.toolNames(key, r.texts(key, value))
	case strings.EqualFold(word, "true") || strings.EqualFold(word, "false"):
		if strings.EqualFold(word, "true") == without {
			r.filterTools(key, true, []string{"*"})
		}
	default:
		r.toolNames(key, strings.FieldsFunc(word, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }))
	}
}

// toolNames reads the names in a field. Without names, a field that excludes tools excludes none. One that includes
// tools must name some: clients differ about what an empty list means.
func (r *reader) toolNames(key string, names []string) {
	without := excludes(canonical(key))
	if len(names) == 0 && !without && canonical(key) != "availabletools" {
		r.fail(".%s is empty: name the tools that the app should have, or remove it", key)
	}
	r.filterTools(key, without, names)
}

// toolSwitches reads an object: a switch for each tool, such as {"delete": false} or {"delete": {"enabled": false}}, or
// fields that are filters themselves.
func (r *reader) toolSwitches(key string, object map[string]json.RawMessage) {
	var on, off []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if list(value) != nil && (excludes(canonical(name)) || includes(canonical(name))) {
			r.toolNames(name, r.texts(key+"."+name, value))
			continue
		}
		used, known := switched(value)
		switch {
		case !known:
			r.fail(".%s.%s does not say whether the tool is used: give true or false", key, name)
		case used:
			on = append(on, name)
		default:
			off = append(off, name)
		}
	}
	switch name := canonical(key); {
	case excludes(name): // {"disabledTools": {"delete": true}}
		off = on
	case includes(name): // {"enabledTools": {"read": true}}
		r.filterTools(key, false, on)
	}
	r.filterTools(key, true, off)
}

// switched reports whether a value switches a tool on. known is false if the value is about something else.
func switched(value json.RawMessage) (on, known bool) {
	for name, inner := range fields(value) {
		word, _ := scalar(inner)
		isTrue, isFalse := strings.EqualFold(word, "true"), strings.EqualFold(word, "false")
		switch canonical(name) {
		case "enabled", "enable", "allowed", "active":
			return isTrue, isTrue || isFalse
		case "disabled", "disable", "denied", "hidden":
			return isFalse, isTrue || isFalse
		}
	}
	word, _ := scalar(value)
	switch canonical(word) {
	case "true", "allow", "enabled", "on":
		return true, true
	case "false", "deny", "disabled", "off":
		return false, true
	}
	return fields(value) != nil, fields(value) != nil // other settings of a tool that is used
}

func (r *reader) filterTools(key string, without bool, names []string) {
	for _, name := range names {
		if name == "" || utf8.RuneCountInString(name) > maxToolPattern || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			r.fail(".%s contains something other than the name of a tool", key)
		}
	}
	if len(names) > maxToolPatterns {
		r.fail(".%s has %d entries; it can have %d", key, len(names), maxToolPatterns)
	}
	if len(names) == 0 || !without && slices.Contains(names, "*") {
		return
	}
	if r.Tools == nil {
		r.Tools = &core.ToolFilter{}
	}
	switch {
	case without:
		r.Tools.Exclude = append(r.Tools.Exclude, names...)
	case r.Tools.Include != nil:
		r.fail(".%s: another field already names the tools that the app should have; keep one of them", key)
	default:
		r.Tools.Include = names
	}
}

func includes(name string) bool {
	return slices.ContainsFunc([]string{"include", "enable", "allow", "available", "only"}, func(word string) bool { return strings.Contains(name, word) })
}

func excludes(name string) bool {
	return slices.ContainsFunc([]string{"disable", "exclude", "deny", "denied", "block", "hidden"}, func(word string) bool { return strings.Contains(name, word) })
}

// unwrap replaces wrappers with the program that they run: a whole command line in one string, cmd /c, env, and the
// path of a program.
func (r *reader) unwrap() {
	for range 3 {
		program := programName(r.Command)
		first, _, several := strings.Cut(strings.TrimSpace(r.Command), " ")
		switch {
		case several && len(r.Args) == 0 && !strings.ContainsAny(first, `/\`) && !strings.ContainsAny(r.Command, `"'`):
			words := strings.Fields(r.Command)
			r.Command, r.Args = words[0], words[1:]
		case program == "cmd" && len(r.Args) > 1 && (strings.EqualFold(r.Args[0], "/c") || strings.EqualFold(r.Args[0], "/k")):
			r.Command, r.Args = r.Args[1], r.Args[2:]
		case program == "env" && len(r.Args) > 0 && !strings.HasPrefix(r.Args[0], "-") && !strings.Contains(r.Args[0], "="):
			r.Command, r.Args = r.Args[0], r.Args[1:]
		case program != path.Base(r.Command):
			r.Command = program
		default:
			return
		}
	}
}

// programName returns the name of a program without its directory and without Windows file name extensions.
func programName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	for _, extension := range []string{".exe", ".cmd", ".bat"} {
		if len(name) > len(extension) && strings.EqualFold(name[len(name)-len(extension):], extension) {
			name = strings.ToLower(name[:len(name)-len(extension)])
		}
	}
	return name
}
