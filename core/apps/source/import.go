package source

import (
	"encoding/json"

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

// ParseServer reads one server of an mcpServers object.
func ParseServer(name string, raw json.RawMessage) (Request, error) {
	var s struct {
		Command   string                 `json:"command"`
		Args      []string               `json:"args"`
		Env       map[string]core.Secret `json:"env"`
		URL       string                 `json:"url"`
		ServerURL string                 `json:"serverUrl"`
		Type      string                 `json:"type"`
		Headers   map[string]core.Secret `json:"headers"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return Request{}, badRequest("mcpServers.%.100s: %v", name, err)
	}
	r := Request{ServerName: name, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL}
	if r.URL == "" {
		r.URL = s.ServerURL
	}
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
