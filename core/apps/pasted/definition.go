package pasted

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/kballard/go-shellquote"

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
	Dir     string // the working directory of Command, absolute; "" for the default

	URL       string
	Transport string // "streamable-http" or "sse"; "" to detect it
	Headers   map[string]string

	// Hidden is Args with given values replaced by references, ${user_config.KEY}. KEY is a key of Env or of Secrets.
	Hidden  []string
	Secrets map[string]string

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
	values map[string]string // values of inputs, by name
	used   []string          // the definition's own variables that other fields refer to
	err    error             // the first error

	hiding bool // references take the place of values
}

// Read reads the definition of one server. values contains the values of its inputs by name. An input that has neither
// a value nor a default is listed in Inputs with Missing set; the rest of the Definition must not be used in that
// case. Error messages continue a sentence that starts with the location of the definition, and they never contain a
// value.
func Read(name string, raw json.RawMessage, values map[string]string) (Definition, error) {
	if err := checkName(name); err != nil {
		return Definition{}, err
	}
	object := fields(raw)
	if object == nil {
		return Definition{}, errors.New(": it is not an object")
	}
	r := reader{values: values}
	r.Env, r.Headers, r.Secrets = map[string]string{}, map[string]string{}, map[string]string{}
	r.fields(object)
	if r.err != nil {
		return Definition{}, r.err
	}
	if (r.Command == "") == (r.URL == "") {
		return Definition{}, errors.New(": give exactly one of command and url")
	}
	if err := r.unwrap(); err != nil {
		return Definition{}, err
	}
	if err := r.resolveInputs(); err != nil {
		return Definition{}, err
	}
	r.collectLeft()
	if r.Dir != "" && !filepath.IsAbs(r.Dir) && !strings.HasPrefix(r.Dir, "${HOME}") {
		return Definition{}, errors.New(": its working directory is relative to a folder on the client's machine; give an absolute path on the server's machine")
	}
	slices.Sort(r.Left)
	return r.Definition, nil
}

// collectLeft lists what a definition contains but servers of its kind do not use, and moves an account in the URL to a
// header, where it is kept as a secret.
func (r *reader) collectLeft() {
	if r.URL == "" {
		if len(r.Headers) > 0 {
			r.Left = append(r.Left, "headers")
		}
		return
	}
	if len(r.Args) > 0 {
		r.Left = append(r.Left, "args")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		if !slices.Contains(r.used, name) {
			r.Left = append(r.Left, "env."+name)
		}
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.User == nil || r.Headers["Authorization"] != "" {
		return
	}
	password, _ := u.User.Password()
	r.Headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	u.User = nil
	r.URL = u.String()
}

func checkName(name string) error {
	if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }) {
		return errors.New(": its name contains unprintable characters; give it another name")
	}
	if strings.EqualFold(path.Base(strings.TrimSpace(name)), "system") {
		return errors.New(": the name system is reserved for the server's own tools; give it another name")
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
		words := r.texts(key, value)
		if split, err := splitWords(text(value)); err == nil && len(split) > 1 {
			words = split
		}
		r.Args = append(r.Args, words...)
	case "env", "environment", "envs":
		r.pairs(key, value, r.Env)
	case "envkeys", "envvars":
		for _, variable := range list(value) {
			if v := text(variable) + text(fields(variable)["name"]); v != "" {
				r.Env[v] = "${" + v + "}"
			}
		}
	case "cwd", "workingdirectory", "workdir":
		r.Dir = text(value)
	case "url", "serverurl", "httpurl", "baseurl", "uri":
		r.URL = strings.TrimSpace(text(value))
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
	case "bearertoken", "authorizationtoken", "apikey":
		r.Headers["Authorization"] = "Bearer " + text(value)
	default:
		r.other(key, value)
	}
}

// other reads the remaining fields, including those that determine whether and where a client runs a server.
func (r *reader) other(key string, value json.RawMessage) {
	word, _ := scalar(value)
	isTrue, isFalse := truth(word)
	switch canonical(key) {
	case "disabled":
		if !isFalse {
			r.disable(key)
		}
	case "enabled", "active", "isactive", "isenabled":
		if !isTrue {
			r.disable(key)
		}
	case "state":
		if strings.EqualFold(word, "disabled") {
			r.disable(key)
		}
	case "envfile":
		r.fail(".%s is a file on the client's machine: give its variables as env", key)
	case "uses":
		r.fail(".%s is a definition that only the client can fetch: give its command or url", key)
	case "source":
		if word == "extension" {
			r.fail(".%s: the server is an extension of the client: give its command or url", key)
		}
	case "name", "description", "bundled", "title", "label", "displayname", "icon", "iconpath", "id", "serverlabel", "$schema", "inputs":
	default:
		if len(fields(value)) > 0 || len(list(value)) > 0 || fields(value) == nil && list(value) == nil {
			r.Left = append(r.Left, key)
		}
	}
}

// truth reports whether a word means true or false. YAML has several words for each.
func truth(word string) (isTrue, isFalse bool) {
	switch strings.ToLower(word) {
	case "true", "yes", "on", "1":
		return true, false
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
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
	if string(value) == `""` {
		return // clients write an empty command for a server with a url
	}
	words := []string{strings.TrimSpace(text(value))}
	if array := list(value); array != nil {
		words = r.texts(key, value)
	}
	if len(words) == 0 || words[0] == "" {
		r.fail(".%s is neither a string nor a list of strings", key)
		return
	}
	r.Command, r.Args = words[0], append(words[1:], r.Args...)
}

// texts reads a list of strings. Numbers and booleans are treated as strings, and a single value as a list of one.
func (r *reader) texts(key string, value json.RawMessage) (words []string) {
	array := list(value)
	if array == nil {
		array = []json.RawMessage{value}
	}
	for i, element := range array {
		word, ok := scalar(element)
		if !ok {
			r.fail(".%s[%d] is neither text nor a number", key, i)
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
			r.Left = append(r.Left, key+"."+name)
			continue
		}
		v, ok := scalar(element)
		if !ok {
			r.fail(".%s.%s is neither text nor a number", key, name)
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
	case "http", "streamable", "streamablehttp", "httpstream":
		r.Transport = "streamable-http"
	case "sse":
		r.Transport = "sse"
	case "", "stdio", "local", "remote", "custom", "url", "mcp":
	case "builtin", "platform", "inmemory", "frontend":
		r.fail(".%s: %.50s is built into the client and has no command or url", key, kind)
	default:
		r.fail(".%s is %.50q; it must be stdio, http or sse", key, kind)
	}
}

// unwrap replaces wrappers with the program that they run: a whole command line in one string, cmd /c, env, and the
// path of a program.
func (r *reader) unwrap() error {
	for range 100 {
		program := programName(r.Command)
		first, _, several := strings.Cut(r.Command, " ")
		switch {
		case several && len(r.Args) == 0 && !strings.ContainsAny(first, `/\`):
			words, err := splitWords(r.Command)
			if err != nil || len(words) == 0 {
				return errors.New(".command has quotation marks that do not match: give the arguments as args")
			}
			r.Command, r.Args = words[0], words[1:]
		case program == "cmd" && len(r.Args) > 1 && (strings.EqualFold(r.Args[0], "/c") || strings.EqualFold(r.Args[0], "/k")):
			r.Command, r.Args = r.Args[1], r.Args[2:]
		case program == "env" && len(r.Args) > 1 && assignment.MatchString(r.Args[0]):
			name, value, _ := strings.Cut(r.Args[0], "=")
			r.Env[name], r.Args = value, r.Args[1:]
		case program == "env" && len(r.Args) > 0 && !strings.HasPrefix(r.Args[0], "-"):
			r.Command, r.Args = r.Args[0], r.Args[1:]
		case program != path.Base(r.Command):
			r.Command = program
		default:
			return nil
		}
	}
	return nil
}

// splitWords splits a command line as a shell does, except that it keeps the backslashes of Windows paths.
func splitWords(line string) ([]string, error) {
	return shellquote.Split(strings.ReplaceAll(line, `\`, `\\`))
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
