package apps

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Primary is the resource path that stands for an app's primary view (spec 4.6).
const Primary = "primary"

// Resource is one resource as an app gave it.
type Resource struct {
	URI  string
	MIME string // "" when the app gave none
	Body []byte
}

// Resource reads one resource of an app by asking the app; no file is ever opened. uri is a URI
// with a scheme, a path under the app's own ui://<server>/, or Primary.
//
// Errors: core.CodeNotFound without such an app, core.CodeResourceNotFound when the app has no
// such resource, else those of Call.
func (y *Manager) Resource(ctx context.Context, workspace, server, uri string) (Resource, error) {
	a, err := y.find(workspace, server)
	if err != nil {
		return Resource{}, err
	}
	uri, err = a.resourceURI(uri)
	if err != nil {
		return Resource{}, err
	}
	params, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		return Resource{}, noResource(server, uri)
	}
	raw, err := y.Call(ctx, workspace, server, Call{Method: "resources/read", Params: params})
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		a.log.Debug("An app has no such resource", "uri", uri, "code", failure.Code, "error", failure.Message)
		return Resource{}, noResource(server, uri)
	}
	if err != nil {
		return Resource{}, err
	}
	return pickResource(raw, server, uri)
}

// resourceURI is the URI that a resource path stands for. File URIs, and paths that climb, are no
// resources of an app.
func (a *app) resourceURI(path string) (string, error) {
	if path == Primary {
		ui := a.now.Load().ui
		if ui == nil || ui.PrimaryView.ResourceURI == "" {
			return "", core.Errorf(core.CodeResourceNotFound, "app %s has no primary view", a.key.name)
		}
		return ui.PrimaryView.ResourceURI, nil
	}
	scheme, rest, ok := strings.Cut(path, "://")
	if !ok {
		scheme, rest = "ui", a.key.name+"/"+path
	}
	if path == "" || strings.EqualFold(scheme, "file") || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return "", noResource(a.key.name, path)
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == ".." || segment == "." {
			return "", noResource(a.key.name, path)
		}
	}
	return scheme + "://" + rest, nil
}

// pickResource takes the content that is named uri, else the first.
func pickResource(raw json.RawMessage, server, uri string) (Resource, error) {
	var answer struct {
		Contents []struct {
			URI  string  `json:"uri"`
			MIME string  `json:"mimeType"`
			Text *string `json:"text"`
			Blob string  `json:"blob"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return Resource{}, core.Wrap(core.CodeUnavailable, err, "app "+server+" answered resources/read with something else")
	}
	if len(answer.Contents) == 0 {
		return Resource{}, noResource(server, uri)
	}
	picked := answer.Contents[0]
	for _, c := range answer.Contents {
		if c.URI == uri {
			picked = c
			break
		}
	}
	r := Resource{URI: uri, MIME: picked.MIME}
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
