package pasted

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
)

// takeLines collects the servers in text that is not a configuration. It finds links that install a server in a
// client, possibly within Markdown or HTML, commands such as `claude mcp add`, command lines that start a server, and
// URLs of servers. It returns an error for any other line among such commands.
func (c *collector) takeLines(text string) error {
	if c.takeLink(strings.TrimSpace(text)) {
		return nil
	}
	for _, link := range links.FindAllString(html.UnescapeString(text), -1) {
		c.takeLink(link)
	}
	if len(c.servers) > 0 {
		return nil
	}
	number := 0
	for line := range strings.Lines(continued.ReplaceAllString(text, " \x00")) {
		number++
		at := number
		number += strings.Count(line, "\x00")
		line = strings.TrimPrefix(strings.TrimSpace(strings.ReplaceAll(line, "\x00", "")), "$ ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if words, err := shellquote.Split(line); err != nil || !c.takeAddition(words) && !c.takeCommand(words) {
			hadServers := len(c.servers) > 0
			clear(c.servers) // this is prose
			if hadServers {
				return fmt.Errorf("line %d is neither a command that adds or starts a server nor the URL of one; remove it", at)
			}
			return nil
		}
	}
	return nil
}

var (
	// links matches URLs, and the links of VS Code, whose scheme has no slashes.
	links = regexp.MustCompile(`(?:[a-z][a-z0-9+.-]*://|vscode(?:-insiders)?:)[^\s"'<>)]+`)
	// continued matches the end of a line that continues on the next, in a shell, PowerShell or cmd.
	continued = regexp.MustCompile("[ \t][\\\\`^]\r?\n")
	// starters matches programs that READMEs tell people to start servers with.
	starters = regexp.MustCompile(`^(npx|uvx|bunx|npm|pnpm|yarn|bun|uv|pipx|node|deno|python[0-9.]*|docker|podman|cmd|java|dotnet|go)$`)
	// assignment matches a variable that is set for one command.
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// takeLink collects the server in a link. Clients put its definition into the query: encoded as JSON or Base64, or as
// separate parameters. VS Code's links may be inside a link to a web page.
func (c *collector) takeLink(link string) bool {
	u, err := url.Parse(link)
	if err != nil || u.Scheme == "" {
		return false
	}
	query := u.Query()
	switch whole, err := url.QueryUnescape(u.RawQuery); {
	case strings.HasPrefix(query.Get("url"), "vscode"):
		return c.takeLink(query.Get("url"))
	case err == nil && fields([]byte(whole)) != nil:
		return c.takeConfig("", []byte(whole))
	case query.Get("config") != "":
		return c.takeConfig(query.Get("name"), decodeConfig(query.Get("config")))
	case u.Host == "extension": // Goose
		definition := map[string]any{"command": query.Get("cmd"), "args": query["arg"], "url": query.Get("url"), "type": query.Get("type")}
		variables := map[string]string{}
		for _, variable := range query["env"] {
			name, _, _ := strings.Cut(variable, "=") // the rest describes the variable
			variables[name] = "${" + name + "}"
		}
		definition["env"] = variables
		return c.takeFields(query.Get("name"), definition)
	}
	return false
}

// decodeConfig returns the JSON in a parameter, which may be encoded as Base64.
func decodeConfig(config string) json.RawMessage {
	if fields([]byte(config)) != nil {
		return []byte(config)
	}
	config = strings.NewReplacer(" ", "+", "-", "+", "_", "/", "=", "").Replace(config)
	decoded, err := base64.RawStdEncoding.DecodeString(config)
	if err != nil {
		return nil
	}
	return decoded
}

// takeConfig collects one definition, or all those in an object.
func (c *collector) takeConfig(name string, document json.RawMessage) bool {
	object, before := fields(document), len(c.servers)
	if isServer(object) {
		c.add(cmp.Or(name, nameIn(document)), document)
		return true
	}
	for key, value := range object {
		if isServer(fields(value)) {
			c.add(key, value)
		} else if containsServers(key, value) {
			c.take(value)
		}
	}
	return len(c.servers) > before
}

// takeFields is takeConfig for a definition that is not JSON. It leaves out empty fields.
func (c *collector) takeFields(name string, definition map[string]any) bool {
	maps.DeleteFunc(definition, func(_ string, value any) bool {
		switch value := value.(type) {
		case string:
			return value == ""
		case []string:
			return len(value) == 0
		case map[string]string:
			return len(value) == 0
		}
		return false
	})
	document, err := json.Marshal(definition)
	return err == nil && c.takeConfig(name, document)
}

// takeAddition collects the server in a client's command that adds one: `claude mcp add`, which Codex, Gemini CLI and
// others copied with small differences, `claude mcp add-json` and `code --add-mcp`.
func (c *collector) takeAddition(words []string) bool {
	if len(words) > 2 && words[1] == "--add-mcp" {
		return c.takeConfig("", []byte(words[2]))
	}
	if len(words) < 4 || words[1] != "mcp" || words[2] != "add" && words[2] != "add-json" {
		return false
	}
	a := addition{definition: map[string]any{}, env: map[string]string{}, headers: map[string]string{}}
	a.read(words[3:])
	if len(a.words) > 1 && words[2] == "add-json" {
		return c.takeConfig(a.words[0], []byte(a.words[1]))
	}
	if len(a.words) > 0 && a.definition["name"] == nil {
		a.definition["name"], a.words = a.words[0], a.words[1:]
	}
	switch {
	case len(a.words) > 0 && isURL(a.words[0]):
		a.definition["url"] = a.words[0]
	case len(a.words) > 0:
		a.definition["command"], a.definition["args"] = a.words[0], a.words[1:]
	}
	a.definition["env"], a.definition["headers"] = a.env, a.headers
	return c.takeFields("", a.definition)
}

func isURL(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
}

// addition holds the arguments of a command that adds a server.
type addition struct {
	definition   map[string]any
	env, headers map[string]string
	words        []string // the name of the server, if it is not an option, and its command or URL
}

func (a *addition) read(words []string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		command := len(a.words) > 1 || len(a.words) == 1 && a.definition["name"] != nil
		switch {
		case word == "--":
			a.words = append(a.words, words[i+1:]...)
			return
		case command && !isURL(a.words[len(a.words)-1]): // everything after a command belongs to it
			a.words = append(a.words, words[i:]...)
			return
		case len(word) < 2 || word[0] != '-':
			a.words = append(a.words, word)
			continue
		}
		option, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if slices.Contains([]string{"trust", "disabled", "global", "force", "yes", "debug"}, option) {
			a.definition[option] = true
			continue
		}
		if !joined && i+1 < len(words) {
			i++
			value = words[i]
		}
		a.option(option, value)
		for slices.Contains([]string{"e", "env"}, option) && i+1 < len(words) && assignment.MatchString(words[i+1]) {
			i++
			a.option(option, words[i])
		}
	}
}

// option reads one option with a value. Most options have the name of a field that Read knows or reports.
func (a *addition) option(option, value string) {
	switch option {
	case "s", "scope":
	case "e", "env":
		name, value, given := strings.Cut(value, "=")
		if !given {
			value = "${" + name + "}"
		}
		a.env[name] = value
	case "H", "header":
		name, rest, ok := strings.Cut(value, ":")
		if !ok {
			name, rest, _ = strings.Cut(value, "=")
		}
		a.headers[strings.TrimSpace(name)] = strings.TrimSpace(rest)
	case "t", "transport":
		a.definition["type"] = value
	case "args":
		a.definition[option] = strings.Split(value, ",")
	default:
		a.definition[option] = value
	}
}

// takeCommand collects the server that a command line starts, or the URL of one.
func (c *collector) takeCommand(words []string) bool {
	env := map[string]string{}
	for len(words) > 0 && assignment.MatchString(words[0]) {
		name, value, _ := strings.Cut(words[0], "=")
		env[name], words = value, words[1:]
	}
	switch {
	case len(words) == 1 && isURL(words[0]):
		return c.takeFields("", map[string]any{"url": words[0]})
	case len(words) > 1 && starters.MatchString(programName(words[0])):
		return c.takeFields("", map[string]any{"command": words[0], "args": words[1:], "env": env})
	}
	return false
}
