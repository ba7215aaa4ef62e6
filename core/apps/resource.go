package apps

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Primary is the resource path of an app's primary view.
const Primary = "primary"

// Resource is the content of a resource as its app sent it.
type Resource struct {
	URI  string
	MIME string // "" if the app did not specify one
	Body []byte
	Meta json.RawMessage // its _meta; nil if it has none
}

// Resource reads a resource from its app. It never opens a file. uri is a URI with a scheme, a path under the app's own
// ui://<server>/, or Primary. c describes the caller: only its Sender, Account and Recheck are set.
//
// Errors: core.CodeNotFound if there is no such app; core.CodeResourceNotFound if the app does not have the resource;
// otherwise those of Call.
func (m *Manager) Resource(ctx context.Context, workspace, server, uri string, c *interact.Call) (Resource, error) {
	a, err := m.find(workspace, server)
	if err != nil {
		return Resource{}, err
	}
	uri, err = a.resourceURI(uri)
	if err != nil {
		return Resource{}, err
	}
	uri = a.listedURI(a.ownView(uri))
	c.Method = "resources/read"
	if c.Params, err = json.Marshal(map[string]string{"uri": uri}); err != nil {
		return Resource{}, noResource(server, uri)
	}
	raw, err := m.Call(ctx, workspace, server, c)
	if rpcErr, ok := errors.AsType[*rpc.Error](err); ok {
		a.log.Debug("app does not have a resource", "uri", uri, "code", rpcErr.Code, "error", rpcErr.Message)
		return Resource{}, noResource(server, uri)
	}
	if err != nil {
		return Resource{}, err
	}
	return pickResource(raw, server, uri)
}

// ownView converts the URI under which a view is served to the app's own URI for it. Other URIs are returned unchanged.
func (a *app) ownView(uri string) string {
	v := a.now.Load()
	rest, served := strings.CutPrefix(uri, "ui://"+a.key.Name+"/")
	own := "ui://" + rest
	is := func(known string) bool { return core.NormalizeURI(known) == core.NormalizeURI(own) }
	if !served || v.ui == nil && len(v.offer.Tools)+len(v.offer.Resources) == 0 {
		return uri
	}
	if v.ui != nil && is(v.ui.PrimaryView.ResourceURI) || slices.ContainsFunc(v.offer.Tools, func(t core.Tool) bool { return t.ViewURI != "" && is(t.ViewURI) }) ||
		slices.ContainsFunc(v.offer.Resources, func(r core.Resource) bool { return is(r.URI) }) {
		return own
	}
	return uri
}

// listedURI returns a URI in the form that the app uses in its list, because clients may percent-encode it differently.
func (a *app) listedURI(uri string) string {
	listed, normal := uri, core.NormalizeURI(uri)
	for _, r := range a.now.Load().offer.Resources {
		if r.URI == uri {
			return uri
		}
		if core.NormalizeURI(r.URI) == normal {
			listed = r.URI
		}
	}
	return listed
}

// resourceURI returns the URI for a resource path. It rejects file URIs and paths that contain "." or ".." segments.
func (a *app) resourceURI(path string) (string, error) {
	if path == Primary {
		ui := a.now.Load().ui
		if ui == nil || ui.PrimaryView.ResourceURI == "" {
			return "", core.Errorf(core.CodeResourceNotFound, "app %s has no primary view", a.key.Name)
		}
		return ui.PrimaryView.ResourceURI, nil
	}
	scheme, rest, ok := strings.Cut(path, "://")
	if !ok {
		scheme, rest = "ui", a.key.Name+"/"+path
	}
	if path == "" || strings.EqualFold(scheme, "file") || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return "", noResource(a.key.Name, path)
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == ".." || segment == "." {
			return "", noResource(a.key.Name, path)
		}
	}
	return scheme + "://" + rest, nil
}

// pickResource returns the content with the given URI, or else the first one.
func pickResource(raw json.RawMessage, server, uri string) (Resource, error) {
	var result struct {
		Contents []struct {
			URI  string          `json:"uri"`
			MIME string          `json:"mimeType"`
			Text *string         `json:"text"`
			Blob string          `json:"blob"`
			Meta json.RawMessage `json:"_meta"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return Resource{}, core.Wrap(core.CodeUnavailable, err, "app "+server+" sent an invalid result for resources/read")
	}
	if len(result.Contents) == 0 {
		return Resource{}, noResource(server, uri)
	}
	picked := result.Contents[0]
	for _, c := range result.Contents {
		if c.URI == uri {
			picked = c
			break
		}
	}
	r := Resource{URI: uri, MIME: picked.MIME, Meta: picked.Meta}
	if picked.Text != nil {
		r.Body = []byte(*picked.Text)
		return r, nil
	}
	body, err := base64.StdEncoding.DecodeString(picked.Blob)
	if err != nil {
		return Resource{}, core.Wrap(core.CodeUnavailable, err, "app "+server+" sent a resource that is not base64")
	}
	r.Body = body
	return r, nil
}

func noResource(server, uri string) error {
	return core.Errorf(core.CodeResourceNotFound, "app %s has no resource %.200q", server, uri)
}
