package source

import (
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// Order is what is to be installed, whether a client or the configuration asked for it.
type Order struct {
	Workspace  string
	ServerName string // "" to derive it from the bundle
	Exact      bool   // ServerName is used as it is
	Source     core.Source
	Version    string // of SourceName; "" for the newest
	Env        map[string]core.Secret
	Remote     *core.Remote // of SourceURL

	AllowPrivate bool // a remote server that a registry names may be on a private address
}

// Order checks a request and returns what it asks for.
func (r Request) Order(workspace string) (Order, error) {
	if err := r.check(); err != nil {
		return Order{}, err
	}
	o := Order{Workspace: workspace, Env: r.Env, AllowPrivate: r.AllowPrivate}
	switch {
	case r.Path != "":
		path, err := filepath.Abs(r.Path)
		if err != nil {
			return Order{}, badRequest("path cannot be made absolute: %v", err)
		}
		o.Source = core.Source{Kind: core.SourcePath, Ref: path}
	case r.Name != "":
		o.Source = core.Source{Kind: core.SourceName, Ref: r.Name}
		if at := strings.LastIndexByte(r.Name, '@'); at > 0 {
			o.Source.Ref, o.Version = r.Name[:at], r.Name[at+1:]
		}
	default:
		remote, err := r.remote()
		if err != nil {
			return Order{}, err
		}
		o.Source = core.Source{Kind: core.SourceURL, Ref: r.URL}
		o.Remote, o.ServerName = remote, r.ServerName
	}
	return o, nil
}
