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

// ImportRequest is the servers of an MCP client's configuration: their definitions, or the text that has them.
type ImportRequest struct {
	MCPServers map[string]json.RawMessage `json:"mcpServers"`
	Text       string                     `json:"text"`   // a whole configuration, in any format that package pasted reads
	Values     map[string]core.Secret     `json:"values"` // what the placeholders of the definitions stand for, by name
	DryRun     bool                       `json:"dryRun"`
	Existing   string                     `json:"existing"` // what to do with apps that exist: "" to report them, "skip" or "replace"

	// Permissions are those of Request, by the names of MCPServers.
	Permissions map[string]*core.PermissionChange `json:"permissions"`
	Caller      core.Caller                       `json:"-"` // as in Request

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
	Status     string          `json:"status"`     // "planned", "installed", "replaced", "exists", "disabled" or "failed"
	Source     core.SourceKind `json:"source,omitempty"`
	Ref        string          `json:"ref,omitempty"`
	Version    string          `json:"version,omitempty"` // the exact version
	Error      string          `json:"error,omitempty"`   // a code
	Message    string          `json:"message,omitempty"`
	Details    any             `json:"details,omitempty"`
	Args       []string        `json:"args,omitempty"`
	Env        []string        `json:"env,omitempty"`     // the names of the variables that are set
	Headers    []string        `json:"headers,omitempty"` // the names of the headers that are sent
	Inputs     []pasted.Input  `json:"inputs,omitempty"`  // what the definition asks for
	Left       []string        `json:"left,omitempty"`    // keys of the definition that are not taken over
	App        *core.App       `json:"app,omitempty"`
}

// Existing says what an import does with a server that has the name of an installed app.
const (
	ExistingSkip    = "skip"
	ExistingReplace = "replace"
)

// Servers returns the definitions of r by name, or core.CodeBadRequest.
func (r ImportRequest) Servers() (map[string]json.RawMessage, error) {
	switch r.Existing {
	case "", ExistingSkip, ExistingReplace:
	default:
		return nil, badRequest("existing is %.50q; it can be %s or %s", r.Existing, ExistingSkip, ExistingReplace)
	}
	if r.Text == "" {
		return r.MCPServers, nil
	}
	if len(r.MCPServers) > 0 {
		return nil, badRequest("give either mcpServers or text")
	}
	servers, err := pasted.Servers([]byte(r.Text))
	if err != nil {
		return nil, badRequest("text: %v", err)
	}
	return servers, nil
}

// ParsedServer is what one definition of an ImportRequest asks for.
type ParsedServer struct {
	Request Request
	Inputs  []pasted.Input // also with an error about those that have no value
	Left    []string
}

// ParseServer reads one server of an mcpServers object. values are those of its placeholders. Errors:
// core.CodeBadRequest, also wrapping a *pasted.Disabled; core.CodeCredentialsRequired when values are missing.
func ParseServer(name string, raw json.RawMessage, values map[string]core.Secret) (ParsedServer, error) {
	given := make(map[string]string, len(values))
	for key, value := range values {
		given[key] = value.Reveal()
	}
	d, err := pasted.Read(name, raw, given)
	if err != nil {
		message := fmt.Sprintf("mcpServers.%.100s%v", strings.ToValidUTF8(name, "?"), err)
		if disabled, ok := errors.AsType[*pasted.Disabled](err); ok {
			return ParsedServer{}, core.Wrap(core.CodeBadRequest, disabled, fmt.Sprintf("mcpServers.%.100s %v", name, err))
		}
		return ParsedServer{}, badRequest("%s", message)
	}
	s := ParsedServer{Inputs: d.Inputs, Left: d.Left}
	var missing []bundle.MissingValue
	for _, in := range d.Inputs {
		if in.Missing {
			missing = append(missing, bundle.MissingValue{Name: in.Name, Title: in.Name, Description: "For " + strings.Join(in.Fields, ", "), Sensitive: true})
		}
	}
	if len(missing) > 0 {
		return s, bundle.CredentialsRequired(missing)
	}
	s.Request = Request{ServerName: name, Command: d.Command, Args: d.Args, Env: secrets(d.Env), URL: d.URL}
	if d.URL != "" {
		s.Request.Transport = &Transport{Type: d.Transport, Headers: secrets(d.Headers)}
		s.Request.Args, s.Request.Env = nil, nil
	}
	return s, nil
}

func secrets(values map[string]string) map[string]core.Secret {
	if len(values) == 0 {
		return nil
	}
	all := make(map[string]core.Secret, len(values))
	for name, value := range values {
		all[name] = core.Secret(value)
	}
	return all
}
