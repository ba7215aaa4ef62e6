package tools

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// perApp begins the URI under which a resource is served that two apps name alike (contract part 7).
const perApp = "ropewalk://"

// place is a resource, or a template of resources, of one app.
type place struct{ server, uri string }

// viewScheme begins the URIs of views (MCP Apps). Hosts render nothing under another scheme.
const viewScheme = "ui://"

func isView(uri string) bool { return strings.HasPrefix(uri, viewScheme) }

// listed is the place's URI when that has to name its app.
func (p place) listed() string {
	if isView(p.uri) {
		return viewScheme + p.server + "/" + strings.TrimPrefix(p.uri, viewScheme)
	}
	return perApp + p.server + "/" + p.uri
}

// places finds the app of a URI.
type places struct {
	exact     map[string]place    // by the URI as it is listed
	shared    map[string]bool     // URIs and templates that several apps use
	templates map[string]place    // by the template as it is listed
	patterns  []pattern           // templates that only one app has
	owners    map[string]struct{} // apps with resources
	views     map[string]string   // the app of a view, by the view's own URI; "" when several have it
}

type pattern struct {
	regexp *regexp.Regexp
	place  place
}

// newPlaces reads who has which resource. The views that tools name count, listed or not.
func newPlaces(o *core.Offer) *places {
	p := &places{exact: map[string]place{}, shared: map[string]bool{}, templates: map[string]place{}, owners: map[string]struct{}{}, views: map[string]string{}}
	first := map[string]string{}
	use := func(server, uri string) {
		p.owners[server] = struct{}{}
		if owner, known := p.views[uri]; isView(uri) && known && owner != server {
			p.views[uri] = ""
		} else if isView(uri) {
			p.views[uri] = server
		}
		if first[uri] == "" {
			first[uri] = server
		}
		if first[uri] != server || strings.HasPrefix(uri, perApp) {
			p.shared[uri] = true
		}
	}
	for _, r := range o.Resources {
		use(r.Server, r.URI)
	}
	for _, t := range o.Templates {
		use(t.Server, t.Template)
	}
	for _, t := range o.Tools {
		if t.ViewURI != "" {
			use(t.Server, t.ViewURI)
		}
	}
	for _, r := range o.Resources {
		p.exact[p.listed(r.Server, r.URI)] = place{r.Server, r.URI}
	}
	for _, t := range o.Tools {
		if t.ViewURI != "" {
			p.exact[p.listed(t.Server, t.ViewURI)] = place{t.Server, t.ViewURI}
		}
	}
	for _, t := range o.Templates {
		at := place{t.Server, t.Template}
		p.templates[p.listed(t.Server, t.Template)] = at
		if parsed, err := uritemplate.New(t.Template); err == nil && !p.shared[t.Template] {
			p.patterns = append(p.patterns, pattern{parsed.Regexp(), at})
		}
	}
	return p
}

// listed is the URI under which an app's resource or template is offered: unchanged, unless it is a view
// or another app has the same. A view always names its app, so that a second app changes nothing.
func (p *places) listed(server, uri string) string {
	if isView(uri) || p.shared[uri] {
		return place{server, uri}.listed()
	}
	return uri
}

// find is the app that a URI leads to. named tells that the URI itself names the app. A URI that is
// listed nowhere leads to the app whose template fits, or else to the only app that can mean it.
func (p *places) find(uri string) (at place, named bool, err error) {
	if at, ok := p.exact[uri]; ok {
		return at, at.uri != uri, nil
	}
	if isView(uri) {
		if at, named, ok := p.findView(uri); ok {
			return at, named, nil
		}
	}
	if rest, ok := strings.CutPrefix(uri, perApp); ok {
		server, inner, ok := strings.Cut(rest, "/")
		if _, owns := p.owners[server]; ok && owns && inner != "" {
			return place{server, inner}, true, nil
		}
		return place{}, false, noResource(uri)
	}
	if p.shared[uri] {
		return place{}, false, core.Errorf(core.CodeResourceNotFound, "several apps have a resource %.200q: name one as %.200s", uri, place{"<app>", uri}.listed()).
			WithDetails(map[string]any{"uri": uri})
	}
	fits := map[string]struct{}{}
	for _, t := range p.patterns {
		if t.regexp.MatchString(uri) {
			fits[t.place.server] = struct{}{}
		}
	}
	if len(fits) == 0 {
		fits = p.owners
		if host := hostOf(uri); len(fits) > 1 {
			if _, ok := p.owners[host]; ok {
				return place{host, uri}, false, nil
			}
		}
	}
	if len(fits) != 1 {
		return place{}, false, noResource(uri)
	}
	for server := range fits {
		at = place{server, uri}
	}
	return at, false, nil
}

// findView finds a view by its own URI, while one app alone has it, or by one that names its app and is
// listed nowhere.
func (p *places) findView(uri string) (at place, named, ok bool) {
	if owner := p.views[uri]; owner != "" {
		return place{owner, uri}, false, true
	}
	server, inner, _ := strings.Cut(strings.TrimPrefix(uri, viewScheme), "/")
	if _, owns := p.owners[server]; owns && inner != "" {
		return place{server, viewScheme + inner}, true, true
	}
	return place{}, false, false
}

func hostOf(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return parsed.Host
}

func noResource(uri string) error {
	return core.Errorf(core.CodeResourceNotFound, "there is no resource %.200q in this workspace", uri).
		WithDetails(map[string]any{"uri": uri})
}

// view is a tool's description in which a view that several apps name alike is the app's own.
func (p *places) view(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
	if t.ViewURI == "" || p.listed(t.Server, t.ViewURI) == t.ViewURI {
		return raw, nil
	}
	own, err := json.Marshal(p.listed(t.Server, t.ViewURI))
	if err != nil {
		return nil, err
	}
	return rawjson.EditMember(raw, "_meta", func(meta json.RawMessage) (json.RawMessage, error) {
		return rawjson.Edit(meta, func(name string, value json.RawMessage) (json.RawMessage, error) {
			switch name {
			case "ui/resourceUri":
				return own, nil
			case "ui":
				return rawjson.EditMember(value, "resourceUri", func(json.RawMessage) (json.RawMessage, error) { return own, nil })
			}
			return nil, nil
		})
	})
}

// relinked is the content (one item) of an answer of server with the URIs in it as they are listed.
func (p *places) relinked(server string, item json.RawMessage) (json.RawMessage, error) {
	uri := func(value json.RawMessage) (json.RawMessage, error) {
		var text string
		_ = json.Unmarshal(value, &text) // what is no string is nobody's URI
		if p.listed(server, text) == text {
			return value, nil
		}
		return json.Marshal(p.listed(server, text))
	}
	return rawjson.Edit(item, func(name string, value json.RawMessage) (json.RawMessage, error) {
		switch name {
		case "uri":
			return uri(value)
		case "resource":
			return rawjson.EditMember(value, "uri", uri)
		}
		return nil, nil
	})
}

// mentions reports whether an answer may hold a URI that has to be changed; hardly any does.
func (p *places) mentions(answer json.RawMessage) bool {
	if len(p.owners) > 0 && bytes.Contains(answer, []byte("ui:")) {
		return true
	}
	for uri := range p.shared {
		if bytes.Contains(answer, []byte(uri)) {
			return true
		}
	}
	return false
}
