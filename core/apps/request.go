package apps

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
)

// InstallRequest is the body of POST /v1/apps/install (spec 4.2): exactly one of Name, Path and
// URL is set. ServerName and Transport go with URL only.
type InstallRequest struct {
	Name       string                 `json:"name"` // in a registry; "name@version" asks for one version
	Path       string                 `json:"path"` // a bundle directory or a .mcpb file
	URL        string                 `json:"url"`  // of a remote MCP server
	ServerName string                 `json:"serverName"`
	Transport  *Transport             `json:"transport"`
	Env        map[string]core.Secret `json:"env"`

	// AllowPrivate lets a remote server be on a loopback or private address. It is the door's to
	// set, from what the caller may.
	AllowPrivate bool `json:"-"`
}

// Transport is the transport object of spec part 2.
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

// The transport types of spec part 2.
const (
	transportStreamable = "streamable-http"
	transportSSE        = "sse"
)

// check refuses what can be refused without looking anywhere: core.CodeBadRequest naming the field.
func (r InstallRequest) check() error {
	if _, err := r.Kind(); err != nil {
		return err
	}
	if r.URL == "" && r.Transport != nil {
		return badRequest("transport goes with url only")
	}
	if r.URL == "" && r.ServerName != "" {
		return badRequest("serverName goes with url only")
	}
	return nil
}

// order is r as the manager works on it.
func (r InstallRequest) order(workspace string) (order, error) {
	if err := r.check(); err != nil {
		return order{}, err
	}
	o := order{workspace: workspace, env: r.Env, allowPrivate: r.AllowPrivate}
	switch {
	case r.Path != "":
		path, err := filepath.Abs(r.Path)
		if err != nil {
			return order{}, badRequest("path cannot be made absolute: %v", err)
		}
		o.source = core.Source{Kind: core.SourcePath, Ref: path}
	case r.Name != "":
		o.source = core.Source{Kind: core.SourceName, Ref: r.Name}
		if at := strings.LastIndexByte(r.Name, '@'); at > 0 {
			o.source.Ref, o.version = r.Name[:at], r.Name[at+1:]
		}
	default:
		remote, err := r.remote()
		if err != nil {
			return order{}, err
		}
		o.source = core.Source{Kind: core.SourceURL, Ref: r.URL}
		o.remote, o.serverName = remote, r.ServerName
	}
	return o, nil
}

// remote is the record of how to reach the URL of r: core.CodeBadRequest naming the field.
func (r InstallRequest) remote() (*core.Remote, error) {
	u, err := url.Parse(r.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, badRequest("url is not an http or https URL")
	}
	if u.User != nil {
		return nil, badRequest("url holds a user name or password; put them in transport.auth")
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
			return core.RemoteAuth{}, badRequest("transport.auth.token is missing; a bearer needs one")
		}
		if err := checkHeader("transport.auth.token", "Authorization", a.Token); err != nil {
			return core.RemoteAuth{}, err
		}
		return core.RemoteAuth{Type: "bearer", Token: a.Token}, nil
	case "header":
		if a.Value == "" {
			return core.RemoteAuth{}, badRequest("transport.auth.value is missing; a header needs one")
		}
		if err := checkHeader("transport.auth", a.Name, a.Value); err != nil {
			return core.RemoteAuth{}, err
		}
		return core.RemoteAuth{Type: "header", Name: a.Name, Value: a.Value}, nil
	}
	return core.RemoteAuth{}, badRequest("transport.auth.type is %q; it can be bearer, header or none", a.Type)
}

func checkHeader(field, name string, value core.Secret) error {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return badRequest("%s: %.100q is not a header name", field, name)
	case transportOwns(http.CanonicalHeaderKey(name)):
		return badRequest("%s: the header %s belongs to the transport and cannot be set", field, name)
	case !httpguts.ValidHeaderFieldValue(value.Reveal()):
		return badRequest("%s: the value of header %s holds a control character", field, name)
	}
	return nil
}

// transportOwns reports whether a header is the transport's own to set.
func transportOwns(header string) bool {
	switch header {
	case "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept", "Upgrade", "Te", "Trailer",
		"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-Id":
		return true
	}
	return strings.HasPrefix(header, "Mcp-Param-")
}

func badRequest(format string, args ...any) error {
	return core.Errorf(core.CodeBadRequest, format, args...)
}
