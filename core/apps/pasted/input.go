package pasted

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Input is a value that a configuration does not contain: the client reads it from its environment, or asks for it.
type Input struct {
	Name    string   `json:"name"`
	Default string   `json:"default,omitempty"`
	Fields  []string `json:"fields"` // where it is used, such as env.API_KEY
	Missing bool     `json:"missing"`
}

var (
	// braced matches placeholders with braces: ${TOKEN}, ${env:TOKEN}, ${input:token}, ${TOKEN:-default}, ${{
	// secrets.TOKEN }}, {{TOKEN}}, {env:TOKEN} and {file:token}.
	braced = regexp.MustCompile(`\$\{\{\s*([^{}]*?)\s*\}\}|\$\{([^{}]*)\}|\{((?:env|file):[^{}]*)\}|\{\{\s*([A-Z][A-Z0-9_]+)\s*\}\}`)
	// bare matches placeholders without braces: $TOKEN at the start of a word, $token as the whole text, and %TOKEN%.
	bare = regexp.MustCompile(`(^|[\s=:/,;"'@(])\$([A-Z_][A-Z0-9_]*)|^()\$([A-Za-z_][A-Za-z0-9_]*)$|()%([A-Z_][A-Z0-9_]{2,})%`)

	// tilde matches the home directory in a path, which clients leave for the app to expand. Here, however, each app
	// has its own home.
	tilde     = regexp.MustCompile(`(^|[=,])~(/|$)`)
	inputName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	// clientOnly matches placeholders for locations and settings that exist only in the client.
	clientOnly = regexp.MustCompile(`^(workspaceFolder|workspaceRoot|pathSeparator|/|file$|file[A-Z:]|relativeFile|cwd$|execPath|(command|config):)`)
	// ownScope matches placeholders that the client fills from a source of its own, such as ${cmd: op read x}.
	ownScope = regexp.MustCompile(`^[a-z][A-Za-z]*:[^-?+=]`)
	// sample matches what documentation shows in place of a value: <YOUR_TOKEN>, Bearer <token>, your-api-key.
	sample = regexp.MustCompile(`^(|.*[\s=:/@])(<[A-Za-z][A-Za-z0-9 _-]*>|(?i:your)[_-][A-Za-z0-9_-]+)$`)
	// filled matches the marks that fill leaves in place of given values.
	filled = regexp.MustCompile("\x00([0-9]+)\x00")
)

// resolveInputs replaces placeholders with the values of the inputs, and lists the inputs.
func (r *reader) resolveInputs() error {
	var err error
	replace := func(field, value string, own map[string]string) string {
		if err != nil {
			return value
		}
		var out string
		out, err = r.fill(field, value, own)
		return out
	}
	r.Command, r.Dir = replace("command", r.Command, nil), replace("cwd", r.Dir, nil)
	own := r.Env
	if r.URL == "" {
		own = nil
	}
	for _, key := range slices.Sorted(maps.Keys(r.Env)) {
		r.Env[key] = replace("env."+key, r.Env[key], nil)
	}
	r.URL = replace("url", r.URL, own)
	for _, key := range slices.Sorted(maps.Keys(r.Headers)) {
		r.Headers[key] = replace("headers."+key, r.Headers[key], own)
	}
	r.Hidden = slices.Clone(r.Args)
	if r.isShell() {
		r.passToShell()
		return err
	}
	for i, arg := range r.Args {
		if i > 0 && r.isProgram(r.Args[i-1]) {
			continue // here ${x} is a template literal of the programming language
		}
		field := fmt.Sprintf("args[%d]", i)
		r.Args[i] = replace(field, arg, r.Env)
		r.hiding = true
		r.Hidden[i] = replace(field, arg, r.Env)
		r.hiding = false
	}
	return err
}

// fill replaces the placeholders in one text. own contains the definition's own variables, which take precedence. Text
// in a given value that looks like a placeholder is not replaced.
func (r *reader) fill(field, text string, own map[string]string) (string, error) {
	var failed error
	var values []string
	replacement := func(name, fallback string) string {
		value := r.value(field, name, fallback, own)
		_, given := r.values[name]
		if _, isOwn := own[name]; !given && !isOwn {
			return value
		}
		values = append(values, value)
		return fmt.Sprintf("\x00%d\x00", len(values)-1)
	}
	text = braced.ReplaceAllStringFunc(strings.ReplaceAll(text, "\x00", ""), func(found string) string {
		m := braced.FindStringSubmatch(found)
		name, fallback, ok := parsePlaceholder(m[1] + m[2] + m[3] + m[4])
		if !ok {
			failed = fmt.Errorf(".%.100s contains %.100s, which only the client can replace; put its value there instead", field, found)
			return found
		}
		return replacement(name, fallback)
	})
	if strings.HasPrefix(field, "args") || strings.HasPrefix(field, "env") || field == "cwd" {
		text = tilde.ReplaceAllString(text, "${1}"+strings.ReplaceAll(r.value(field, "HOME", "", own), "$", "$$")+"${2}")
	}
	if field != "url" { // in a URL, %41 and $ have their own meaning
		text = bare.ReplaceAllStringFunc(text, func(found string) string {
			m := bare.FindStringSubmatch(found)
			return m[1] + replacement(m[2]+m[4]+m[6], "")
		})
		if m := sample.FindStringSubmatch(text); m != nil {
			text = m[1] + replacement(strings.ReplaceAll(strings.Trim(m[2], "<>"), " ", "-"), m[2])
		}
	}
	return filled.ReplaceAllStringFunc(text, func(mark string) string {
		if n, err := strconv.Atoi(strings.Trim(mark, "\x00")); err == nil && n < len(values) {
			return values[n]
		}
		return mark
	}), failed
}

// IsSample reports whether a default is only a sample value, as in documentation.
func IsSample(fallback string) bool { return sample.MatchString(fallback) }

// parsePlaceholder returns the name and the default of a placeholder. ok is false if only the client can replace it.
func parsePlaceholder(inside string) (name, fallback string, ok bool) {
	inside = strings.TrimSpace(inside)
	ends := ":-?+=" // as in a shell: ${NAME:-default}, ${NAME-default}, ${NAME:?why}
	for _, scope := range []string{"input:", "env:", "secrets.", "inputs.", "env.", "vars."} {
		if rest, found := strings.CutPrefix(inside, scope); found {
			inside, ends = rest, ":"
			break
		}
	}
	if inside == "userHome" {
		return "HOME", "", true
	}
	if clientOnly.MatchString(inside) || ends != ":" && ownScope.MatchString(inside) {
		return "", "", false
	}
	name = inside
	if at := strings.IndexAny(inside, ends); at > 0 {
		name = inside[:at]
		rest := strings.TrimPrefix(inside[at:], ":")
		if !strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "+") {
			fallback = strings.TrimLeft(rest, "-=")
		}
	}
	return name, fallback, inputName.MatchString(name)
}

// value returns the value of an input, and lists the input unless it is one of the definition's own variables.
func (r *reader) value(field, name, fallback string, own map[string]string) string {
	if value, ok := own[name]; ok {
		r.used = append(r.used, name)
		if r.hiding && value != "" {
			return "${user_config." + name + "}"
		}
		return value
	}
	value, given := r.values[name]
	switch {
	case !given && name == "HOME": // the server has one, and a bundle refers to it in this form
		return "${HOME}"
	case name == "HOME":
		return value
	case !given:
		value = fallback
	}
	at := slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Name == name })
	if at < 0 {
		at = len(r.Inputs)
		r.Inputs = append(r.Inputs, Input{Name: name, Default: fallback})
	}
	in := &r.Inputs[at]
	in.Missing = in.Missing || value == "" && !given
	if !slices.Contains(in.Fields, field) {
		in.Fields = append(in.Fields, field)
	}
	if r.hiding && given && value != "" {
		r.Secrets[inputPrefix+name] = value
		return "${user_config." + inputPrefix + name + "}"
	}
	return value
}

// inputPrefix begins the keys of Definition.Secrets. Because of the dot, none of them can be the name of an environment
// variable.
const inputPrefix = "input."

// isShell reports whether the command is a shell that expands the variables in its arguments.
func (r *reader) isShell() bool {
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ash", "ksh", "fish"}, programName(r.Command)) &&
		len(r.Args) > 1 && strings.HasPrefix(r.Args[0], "-") && strings.HasSuffix(r.Args[0], "c")
}

var languages = regexp.MustCompile(`^(node|nodejs|deno|bun|python|pypy|ruby|perl|php)[0-9.]*$`)

// isProgram reports whether the argument after this flag is source code, as after node -e and python -c.
func (r *reader) isProgram(flag string) bool {
	return languages.MatchString(programName(r.Command)) && slices.Contains([]string{"-e", "--eval", "-p", "--print", "-pe", "-c", "eval"}, flag)
}

var shellVariable = regexp.MustCompile(`\$([A-Z_][A-Z0-9_]*)|\$\{([A-Z_][A-Z0-9_]*)\}`)

// passToShell passes the variables of a shell script to the shell as environment variables. If their values were
// inserted into the script, the shell would parse them as code. Standard variables such as HOME, and those that the
// script sets itself, are left alone.
func (r *reader) passToShell() {
	for i, arg := range r.Args {
		for _, m := range shellVariable.FindAllStringSubmatch(arg, -1) {
			name := m[1] + m[2]
			if _, own := r.Env[name]; own || slices.Contains([]string{"HOME", "PATH", "PWD", "USER", "TMPDIR", "IFS", "_"}, name) || strings.Contains(arg, name+"=") {
				continue
			}
			r.Env[name] = r.value(fmt.Sprintf("args[%d]", i), name, "", nil)
		}
	}
}
