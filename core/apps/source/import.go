package source

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// ImportRequest is an mcpServers object, as the configuration files of MCP clients have it.
type ImportRequest struct {
	MCPServers map[string]json.RawMessage `json:"mcpServers"`
	DryRun     bool                       `json:"dryRun"`

	// AllowPrivate and Restricted are those of Request. Allowed refuses kinds of sources that the caller may not install;
	// nil allows all. The HTTP API sets them from the rights of the caller.
	AllowPrivate bool                        `json:"-"`
	Restricted   bool                        `json:"-"`
	Allowed      func(core.SourceKind) error `json:"-"`
}

// ImportResult says what became of each server of an ImportRequest.
type ImportResult struct {
	DryRun  bool             `json:"dryRun"`
	Servers []ImportedServer `json:"servers"` // sorted by name
}

// ImportedServer is one server of an ImportResult.
type ImportedServer struct {
	Name       string          `json:"name"`       // of the mcpServers object
	ServerName string          `json:"serverName"` // of the app
	Status     string          `json:"status"`     // "planned", "installed", "exists" or "failed"
	Source     core.SourceKind `json:"source,omitempty"`
	Ref        string          `json:"ref,omitempty"`
	Version    string          `json:"version,omitempty"` // the exact version
	Error      string          `json:"error,omitempty"`   // a code
	Message    string          `json:"message,omitempty"`
	Details    any             `json:"details,omitempty"`
	App        *core.App       `json:"app,omitempty"`
}

// definition is one server of an mcpServers object. Clients name the address in three ways.
type definition struct {
	Command   string                 `json:"command"`
	Args      []string               `json:"args"`
	Env       map[string]core.Secret `json:"env"`
	EnvFile   string                 `json:"envFile"`
	Cwd       string                 `json:"cwd"`
	URL       string                 `json:"url"`
	ServerURL string                 `json:"serverUrl"`
	HTTPURL   string                 `json:"httpUrl"`
	Type      string                 `json:"type"`
	Headers   map[string]core.Secret `json:"headers"`
	Disabled  bool                   `json:"disabled"`
}

// placeholder is what a client replaces before it starts a server. Only that client knows the values.
var placeholder = regexp.MustCompile(`\$\{((input|env|command|config):[^}]*|workspaceFolder[^}]*|userHome|pathSeparator|/)\}`)

// ParseServer reads one server of an mcpServers object.
func ParseServer(name string, raw json.RawMessage) (Request, error) {
	var s definition
	if err := json.Unmarshal(raw, &s); err != nil {
		return Request{}, badRequest("mcpServers.%.100s: %v", name, err)
	}
	if err := s.check(name); err != nil {
		return Request{}, err
	}
	r := Request{ServerName: name, Command: s.Command, Args: s.Args, Env: s.Env, URL: cmp.Or(s.URL, s.ServerURL, s.HTTPURL)}
	if r.URL != "" {
		r.Transport = &Transport{Headers: s.Headers}
		switch s.Type {
		case "", "http", transportStreamable, "streamableHttp":
		case transportSSE:
			r.Transport.Type = transportSSE
		default:
			return Request{}, badRequest("mcpServers.%.100s.type is %.50q; it can be http or sse", name, s.Type)
		}
	}
	if (r.Command == "") == (r.URL == "") {
		return Request{}, badRequest("mcpServers.%.100s: give exactly one of command and url", name)
	}
	return r, nil
}

// check refuses what means something on the machine of the client only, instead of ignoring it.
func (s definition) check(name string) error {
	switch {
	case s.Disabled:
		return badRequest("mcpServers.%.100s is disabled in this configuration: remove `disabled` to install it", name)
	case s.EnvFile != "":
		return badRequest("mcpServers.%.100s.envFile is a file on the client's machine: give its variables as env", name)
	case s.Cwd != "":
		return badRequest("mcpServers.%.100s.cwd is a folder on the client's machine: remove it, and give absolute paths of the server's machine in args", name)
	}
	texts := map[string]string{"command": s.Command, "url": s.URL, "serverUrl": s.ServerURL, "httpUrl": s.HTTPURL}
	for i, arg := range s.Args {
		texts[fmt.Sprintf("args[%d]", i)] = arg
	}
	for key, value := range s.Env {
		texts["env."+key] = value.Reveal()
	}
	for key, value := range s.Headers {
		texts["headers."+key] = value.Reveal()
	}
	for _, field := range slices.Sorted(maps.Keys(texts)) {
		if found := placeholder.FindString(texts[field]); found != "" {
			return badRequest("mcpServers.%.100s.%.100s contains %.100s, which only the client can replace: put the value there", name, field, found)
		}
	}
	return nil
}
