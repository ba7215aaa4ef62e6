package source

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	link "github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/internal/hostport"
)

// Request is the body of POST /v1/apps/install. Exactly one of Name, Path, URL, NPM, PyPI and Command must be set.
type Request struct {
	Name       string     `json:"name"` // in a registry; "name@version" requests one version
	Path       string     `json:"path"` // a bundle directory or a .mcpb file
	URL        string     `json:"url"`  // the address of a remote MCP server
	NPM        string     `json:"npm"`  // an npm package; "package@version" requests one version
	PyPI       string     `json:"pypi"` // a PyPI project or "project[extra]", optionally with "@version" or "==version"
	Bin        string     `json:"bin"`  // the command of an npm package or PyPI project to run
	Command    string     `json:"command"`
	Args       []string   `json:"args"`
	ServerName string     `json:"serverName"`
	Transport  *Transport `json:"transport"`
	// StartTimeout is how long the app may take to start, in seconds, at most an hour. 0 means the default.
	StartTimeout int `json:"startTimeoutSeconds"`

	Env map[string]core.Secret `json:"env"`

	// Permissions are decisions about what the definition asks for. If set, they must cover everything it asks for.
	Permissions *core.PermissionChange `json:"permissions"`

	// Dir is the working directory of a command, an npm package or a PyPI project, absolute. An import sets it.
	Dir string `json:"-"`
	// Tools limits the tools of the app; nil for all. An import sets it.
	Tools *core.ToolFilter `json:"-"`

	// hidden is Args with secret values replaced by references to Env and to secrets; nil if there are none. An import
	// sets it.
	hidden  []string
	secrets map[string]core.Secret

	// Caller is the person who installs. If Hints is set, errors may say what the sandbox hides. The HTTP API sets
	// both.
	Caller core.Caller `json:"-"`
	Hints  bool        `json:"-"`
	// AllowPrivate allows a remote server on a loopback or private address. The HTTP API sets it from the caller's
	// rights.
	AllowPrivate bool `json:"-"`
	// Restricted means that the caller is an admin of a workspace, not of the organization. In that case, no code is
	// installed if the server cannot confine it. The HTTP API sets it from the caller's rights.
	Restricted bool `json:"-"`
	// Replace makes an uploaded file a new version of the uploaded app that has its name.
	Replace bool `json:"-"`
}

// UpdateRequest is the body of POST /v1/apps/:name/update.
type UpdateRequest struct {
	Version string `json:"version"` // "" for the newest

	// Permissions are decisions about what the new version asks for. If set, everything must be decided, now or
	// earlier.
	Permissions *core.PermissionChange `json:"permissions"`

	Caller     core.Caller `json:"-"` // who updates and decides
	Restricted bool        `json:"-"` // see Request
}

// Transport describes how to reach a remote server.
type Transport struct {
	Type    string                 `json:"type"` // "streamable-http" or "sse"; "" tries both, in this order
	Auth    *Auth                  `json:"auth"`
	Headers map[string]core.Secret `json:"headers"`
}

// Auth is the auth object of a transport. Its Type is bearer (with Token), header (with Name and Value), user or shared
// (for linked accounts), or none.
type Auth struct {
	Type  string      `json:"type"`
	Token core.Secret `json:"token"`
	Name  string      `json:"name"`
	Value core.Secret `json:"value"`

	ClientID     string      `json:"clientId"` // with user and shared: this server's ID with the authorization server
	ClientSecret core.Secret `json:"clientSecret"`
	Issuer       string      `json:"issuer"` // the authorization server of ClientID
	Scopes       []string    `json:"scopes"`
}

// These are the transports of MCP over HTTP.
const (
	transportStreamable = "streamable-http"
	transportSSE        = "sse"
)

// check returns core.CodeBadRequest for contradictory requests, naming the field.
func (r Request) check() error {
	if _, err := r.Kind(); err != nil {
		return err
	}
	if r.URL == "" && r.Transport != nil {
		return badRequest("transport can only be used with url")
	}
	if r.Args != nil && r.Command == "" && r.NPM == "" && r.PyPI == "" {
		return badRequest("args can only be used with command, npm and pypi")
	}
	if r.StartTimeout < 0 || r.StartTimeout > maxStartTimeout {
		return badRequest("startTimeoutSeconds is %d; it must be between 1 and %d", r.StartTimeout, maxStartTimeout)
	}
	if r.Bin != "" && r.NPM == "" && r.PyPI == "" {
		return badRequest("bin can only be used with npm and pypi")
	}
	return checkBin("bin", r.Bin)
}

const maxStartTimeout = 3600

// binForm is the form of command names in packages. A match is never a command-line option or a path.
var binForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

func checkBin(field, bin string) error {
	if bin != "" && !binForm.MatchString(bin) {
		return badRequest("%s: %.200q is not the name of a command", field, bin)
	}
	return nil
}

// remote returns how to reach the URL of r. Errors have core.CodeBadRequest and name the field.
func (r Request) remote() (*core.Remote, error) {
	u, err := url.Parse(r.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, badRequest("url is not an http or https URL")
	}
	if err := hostport.Check(u); err != nil {
		return nil, badRequest("url %v", err)
	}
	if u.User != nil {
		return nil, badRequest("url contains a user name or password; use transport.auth")
	}
	if strings.HasSuffix(strings.ToLower(u.Path), ".mcpb") {
		return nil, badRequest("url is the address of a bundle file, not of an MCP server: download the file and install it by its path, or upload it")
	}
	remote := &core.Remote{URL: r.URL, Type: transportStreamable, Auth: core.RemoteAuth{Type: "none"}, AllowPrivate: r.AllowPrivate}
	t := r.Transport
	if t == nil {
		return remote, nil
	}
	switch t.Type {
	case "":
	case transportStreamable, transportSSE:
		remote.Type = t.Type
	default:
		return nil, badRequest("transport.type is %q; it must be %s or %s", t.Type, transportStreamable, transportSSE)
	}
	if t.Auth != nil {
		if remote.Auth, err = t.Auth.record(); err != nil {
			return nil, err
		}
	}
	for name, value := range t.Headers {
		if remote.Auth.Replaces(name) {
			return nil, badRequest("transport.headers: %s would replace the call's account; leave it out, or use transport.auth with the type bearer or header", name)
		}
		if err := checkHeader("transport.headers", name, value); err != nil {
			return nil, err
		}
	}
	remote.Headers = t.Headers
	return remote, nil
}

func (a Auth) record() (core.RemoteAuth, error) {
	switch a.Type {
	case "none", "":
		return core.RemoteAuth{Type: "none"}, nil
	case "bearer":
		if a.Token == "" {
			return core.RemoteAuth{}, badRequest("transport.auth.token is required with type bearer")
		}
		if err := checkHeader("transport.auth.token", "Authorization", a.Token); err != nil {
			return core.RemoteAuth{}, err
		}
		return core.RemoteAuth{Type: "bearer", Token: a.Token}, nil
	case "header":
		if a.Value == "" {
			return core.RemoteAuth{}, badRequest("transport.auth.value is required with type header")
		}
		if err := checkHeader("transport.auth", a.Name, a.Value); err != nil {
			return core.RemoteAuth{}, err
		}
		return core.RemoteAuth{Type: "header", Name: a.Name, Value: a.Value}, nil
	case core.AuthUser, core.AuthShared:
		return a.accounts()
	case core.AuthExchange:
		return core.RemoteAuth{}, badRequest("transport.auth.type exchange can only be set in the configuration (apps.<name>.transport.auth), because callers' tokens go to its tokenUrl")
	}
	return core.RemoteAuth{}, badRequest("transport.auth.type is %q; it must be bearer, header, user, shared or none", a.Type)
}

// accounts returns the record of an app that is called with linked accounts.
func (a Auth) accounts() (core.RemoteAuth, error) {
	if a.ClientID == "" && a.ClientSecret+core.Secret(a.Issuer) != "" {
		return core.RemoteAuth{}, badRequest("transport.auth.clientId is required with clientSecret and issuer")
	}
	for _, scope := range a.Scopes {
		if !core.ValidScope(scope) {
			return core.RemoteAuth{}, badRequest("transport.auth.scopes: %.100q is not an OAuth scope", scope)
		}
	}
	return core.RemoteAuth{Type: a.Type, ClientID: a.ClientID, ClientSecret: a.ClientSecret, Issuer: a.Issuer, Scopes: strings.Join(a.Scopes, " ")}, nil
}

func checkHeader(field, name string, value core.Secret) error {
	if err := link.CheckHeader(field, name, value); err != nil {
		return badRequest("%v", err)
	}
	return nil
}

func badRequest(format string, args ...any) error {
	return core.Errorf(core.CodeBadRequest, format, args...)
}

// Kind returns the kind of source that r names. It returns core.CodeBadRequest if r names no source or more than one.
func (r Request) Kind() (core.SourceKind, error) {
	var kinds []core.SourceKind
	for _, source := range []struct {
		kind core.SourceKind
		ref  string
	}{
		{core.SourceName, r.Name}, {core.SourcePath, r.Path}, {core.SourceURL, r.URL},
		{core.SourceNPM, r.NPM}, {core.SourcePyPI, r.PyPI}, {core.SourceCommand, r.Command},
	} {
		if source.ref != "" {
			kinds = append(kinds, source.kind)
		}
	}
	if len(kinds) != 1 {
		return "", badRequest("specify exactly one of name, path, url, npm, pypi and command; %d were specified", len(kinds))
	}
	return kinds[0], nil
}
