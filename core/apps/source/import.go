package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/pasted"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// ImportRequest contains the servers of an MCP client's configuration: either their definitions, or the text of the
// configuration.
type ImportRequest struct {
	MCPServers map[string]json.RawMessage `json:"mcpServers"`
	Text       string                     `json:"text"`   // a configuration, in any format that package pasted reads
	Values     map[string]core.Secret     `json:"values"` // values for the placeholders in the definitions, by name
	DryRun     bool                       `json:"dryRun"`
	Existing   string                     `json:"existing"` // for existing apps: "" to report them, "skip" or "replace"

	// Permissions holds the decisions for each server, by its name in MCPServers; see Request.
	Permissions map[string]*core.PermissionChange `json:"permissions"`
	Caller      core.Caller                       `json:"-"` // see Request

	// AllowPrivate and Restricted have the same meaning as in Request. Allowed returns an error for kinds of sources
	// that the caller may not install; nil allows all kinds. The HTTP API sets these from the caller's rights.
	AllowPrivate bool                        `json:"-"`
	Restricted   bool                        `json:"-"`
	Allowed      func(core.SourceKind) error `json:"-"`
}

// ImportResult reports the outcome for each server of an ImportRequest.
type ImportResult struct {
	DryRun  bool             `json:"dryRun"`
	Servers []ImportedServer `json:"servers"` // sorted by name
}

// ImportedServer reports the outcome for one server.
type ImportedServer struct {
	Name       string           `json:"name"`       // its key in the mcpServers object
	ServerName string           `json:"serverName"` // the server name of the app
	Status     string           `json:"status"`     // "planned", "installed", "replaced", "exists", "disabled" or "failed"
	Source     core.SourceKind  `json:"source,omitempty"`
	Ref        string           `json:"ref,omitempty"`
	Version    string           `json:"version,omitempty"` // the exact version
	Error      string           `json:"error,omitempty"`   // an error code
	Message    string           `json:"message,omitempty"`
	Details    any              `json:"details,omitempty"`
	Args       []string         `json:"args,omitempty"`
	Env        []string         `json:"env,omitempty"`        // names of the variables that are set
	Headers    []string         `json:"headers,omitempty"`    // names of the headers that are sent
	Inputs     []pasted.Input   `json:"inputs,omitempty"`     // what the definition asks for
	Left       []string         `json:"left,omitempty"`       // keys of the definition that were ignored
	ToolFilter *core.ToolFilter `json:"toolFilter,omitempty"` // the tools that the definition leaves enabled

	// Requests lists what a planned server asks for and the caller may grant.
	Requests []core.PermissionRequest `json:"requests,omitempty"`

	App *core.App `json:"app,omitempty"`
}

// These constants determine what an import does if a server has the name of an installed app.
const (
	ExistingSkip    = "skip"
	ExistingReplace = "replace"
)

// Servers returns the definitions in r by name. Errors have core.CodeBadRequest.
func (r ImportRequest) Servers() (map[string]json.RawMessage, error) {
	switch r.Existing {
	case "", ExistingSkip, ExistingReplace:
	default:
		return nil, badRequest("existing is %.50q; it must be %s or %s", r.Existing, ExistingSkip, ExistingReplace)
	}
	if r.Text == "" {
		return r.MCPServers, nil
	}
	if len(r.MCPServers) > 0 {
		return nil, badRequest("specify either mcpServers or text")
	}
	servers, err := pasted.Servers([]byte(r.Text))
	if err != nil {
		return nil, badRequest("text: %v", err)
	}
	return servers, nil
}

// ParsedServer is the install request for one definition of an ImportRequest.
type ParsedServer struct {
	Request Request
	Inputs  []pasted.Input // also set when the error is that some of them have no value
	Left    []string
}

// ParseServer reads one server of an mcpServers object. values holds the values of its placeholders. Errors are
// core.CodeBadRequest, which may wrap a *pasted.Disabled, and core.CodeCredentialsRequired if values are missing.
func ParseServer(name string, raw json.RawMessage, values map[string]core.Secret) (ParsedServer, error) {
	d, err := pasted.Read(name, raw, core.RevealAll(values))
	if err != nil {
		message := fmt.Sprintf("mcpServers.%.100s%v", strings.ToValidUTF8(name, "?"), err)
		if name == "" {
			message = fmt.Sprintf("the definition%v", err)
		}
		if disabled, ok := errors.AsType[*pasted.Disabled](err); ok {
			return ParsedServer{}, core.Wrap(core.CodeBadRequest, disabled, fmt.Sprintf("mcpServers.%.100s %v", name, err))
		}
		return ParsedServer{}, badRequest("%s", message)
	}
	s := ParsedServer{Inputs: d.Inputs, Left: d.Left}
	var missing []bundle.MissingValue
	var names []string
	for _, in := range d.Inputs {
		if in.Missing {
			names = append(names, fmt.Sprintf("%s (for %s)", in.Name, strings.Join(in.Fields, ", ")))
			missing = append(missing, bundle.MissingValue{Name: in.Name, Title: in.Name, Description: "For " + strings.Join(in.Fields, ", "), Sensitive: true})
		}
	}
	if len(missing) > 0 {
		return s, core.Errorf(core.CodeCredentialsRequired, "the definition needs values that were not provided: %s", strings.Join(names, ", ")).
			WithDetails(map[string]any{"missing": missing})
	}
	s.Request = Request{ServerName: name, Command: d.Command, Args: d.Args, Dir: d.Dir, Env: core.Secrets(d.Env), URL: d.URL, Tools: d.Tools}
	s.Request.hidden, s.Request.secrets = d.Hidden, core.Secrets(d.Secrets)
	if d.URL != "" {
		s.Request.Transport = &Transport{Type: d.Transport, Headers: core.Secrets(d.Headers)}
		s.Request.Args, s.Request.Env = nil, nil
	}
	return s, nil
}
