package source

import (
	"net/url"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	link "github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/internal/hostport"
)

// Request is the body of POST /v1/apps/install: exactly one of Name, Path, URL, NPM, PyPI and Command
// is set.
type Request struct {
	Name       string                 `json:"name"` // in a registry; "name@version" asks for one version
	Path       string                 `json:"path"` // a bundle directory or a .mcpb file
	URL        string                 `json:"url"`  // of a remote MCP server
	NPM        string                 `json:"npm"`  // an npm package; "package@version" asks for one version
	PyPI       string                 `json:"pypi"` // a PyPI project; "project@version" or "project==version"
	Command    string                 `json:"command"`
	Args       []string               `json:"args"`
	ServerName string                 `json:"serverName"`
	Transport  *Transport             `json:"transport"`
	Env        map[string]core.Secret `json:"env"`

	// AllowPrivate lets a remote server be on a loopback or private address. The HTTP API sets it
	// from the rights of the caller.
	AllowPrivate bool `json:"-"`
	// Restricted says that the caller is an admin of a workspace, not of the organization: no code is
	// installed where the server cannot confine it. The HTTP API sets it from the rights of the caller.
	Restricted bool `json:"-"`
}

// UpdateRequest is the body of POST /v1/apps/:name/update.
type UpdateRequest struct {
	Version string `json:"version"` // "" for the newest

	Restricted bool `json:"-"` // as in Request
}

// Transport says how to reach a remote server.
type Transport struct {
	Type    string                 `json:"type"` // "streamable-http" (also when empty) or "sse"
	Auth    *Auth                  `json:"auth"`
	Headers map[string]core.Secret `json:"headers"`
}

// Auth is the auth object of a transport: bearer with Token, header with Name and Value, or none.
type Auth struct {
	Type  string      `json:"type"`
	Token core.Secret `json:"token"`
	Name  string      `json:"name"`
	Value core.Secret `json:"value"`
}

// The transports of MCP over HTTP.
const (
	transportStreamable = "streamable-http"
	transportSSE        = "sse"
)

// check refuses contradictory requests with core.CodeBadRequest, naming the field.
func (r Request) check() error {
	if _, err := r.Kind(); err != nil {
		return err
	}
	if r.URL == "" && r.Transport != nil {
		return badRequest("transport goes with url only")
	}
	if r.Args != nil && r.Command == "" && r.NPM == "" && r.PyPI == "" {
		return badRequest("args goes with command, npm and pypi only")
	}
	return nil
}

// remote returns how to reach the URL of r, or core.CodeBadRequest naming the field.
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
		return nil, badRequest("url is the address of a bundle file, and it takes that of an MCP server: download the file and install it by its path, or upload it")
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
		return nil, badRequest("transport.type is %q; it can be %s or %s", t.Type, transportStreamable, transportSSE)
	}
	if t.Auth != nil {
		if remote.Auth, err = t.Auth.record(); err != nil {
			return nil, err
		}
	}
	for name, value := range t.Headers {
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
	}
	return core.RemoteAuth{}, badRequest("transport.auth.type is %q; it can be bearer, header or none", a.Type)
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
