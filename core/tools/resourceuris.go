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

// perApp is the prefix of the URIs under which resources are listed if several apps use the same URI (docs/api.md
// 10.6).
const perApp = "ropewalk://"

// resourceRef is a resource or resource template of one app.
type resourceRef struct{ server, uri string }

// viewScheme is the prefix of every view's URI (MCP Apps). Hosts do not render views with any other scheme.
const viewScheme = "ui://"

func isView(uri string) bool { return strings.HasPrefix(uri, viewScheme) }

// listed returns the URI that contains the app.
func (r resourceRef) listed() string {
	if isView(r.uri) {
		return core.ViewURI(r.server, r.uri)
	}
	return perApp + r.server + "/" + r.uri
}

// resourceURIs finds the app for a URI. URIs that are equal after normalization (core.NormalizeURI) are the same
// resource, because clients percent-encode non-ASCII characters that an app lists.
type resourceURIs struct {
	exact     map[string]resourceRef // by listed URI
	normal    map[string]resourceRef // by normalized URI: entries of exact whose listed URI is not normalized
	shared    map[string]bool        // URIs and templates used by several apps, as written and normalized
	templates map[string]resourceRef // by listed template
	patterns  []pattern              // templates that only one app has
	owners    map[string]struct{}    // apps with resources
	views     map[string]resourceRef // views by the app's own URI, normalized; the zero value if several apps have it
}

type pattern struct {
	regexp *regexp.Regexp // for the normalized template
	ref    resourceRef
}

// newResourceURIs records which app has which resource, including unlisted views that tools refer to.
func newResourceURIs(o *core.Offer) *resourceURIs {
	p := &resourceURIs{
		exact: map[string]resourceRef{}, normal: map[string]resourceRef{}, shared: map[string]bool{}, templates: map[string]resourceRef{},
		owners: map[string]struct{}{}, views: map[string]resourceRef{},
	}
	first := map[string]resourceRef{}
	use := func(server, uri string) { p.use(first, resourceRef{server, uri}) }
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
		p.add(resourceRef{r.Server, r.URI})
	}
	for _, t := range o.Tools {
		if t.ViewURI != "" {
			p.add(resourceRef{t.Server, t.ViewURI})
		}
	}
	for _, t := range o.Templates {
		at := resourceRef{t.Server, t.Template}
		p.templates[p.listed(t.Server, t.Template)] = at
		if parsed, err := uritemplate.New(core.NormalizeURI(t.Template)); err == nil && !p.shared[t.Template] {
			p.patterns = append(p.patterns, pattern{parsed.Regexp(), at})
		}
	}
	return p
}

// use records that an app uses a URI. first holds the first app that uses each URI, by normalized URI.
func (p *resourceURIs) use(first map[string]resourceRef, at resourceRef) {
	p.owners[at.server] = struct{}{}
	normal := core.NormalizeURI(at.uri)
	if isView(at.uri) {
		if known, ok := p.views[normal]; ok && known.server != at.server {
			p.views[normal] = resourceRef{}
		} else {
			p.views[normal] = at
		}
	}
	earlier, known := first[normal]
	if !known {
		first[normal], earlier = at, at
	}
	if earlier.server != at.server || strings.HasPrefix(at.uri, perApp) {
		p.shared[normal], p.shared[at.uri], p.shared[earlier.uri] = true, true, true
	}
}

func (p *resourceURIs) add(at resourceRef) {
	listed := p.listed(at.server, at.uri)
	p.exact[listed] = at
	if normal := core.NormalizeURI(listed); normal != listed {
		p.normal[normal] = at
	}
}

// lookup returns the resource that is listed under a URI.
func (p *resourceURIs) lookup(uri, normal string) (resourceRef, bool) {
	if at, ok := p.exact[uri]; ok {
		return at, true
	}
	if at, ok := p.exact[normal]; ok {
		return at, true
	}
	at, ok := p.normal[normal]
	return at, ok
}

// listed returns the URI under which an app's resource or template is listed: its own URI, unless it is a view or
// another app uses the same URI. A view's URI always contains the app, so that it does not change when a second app
// uses the same URI.
func (p *resourceURIs) listed(server, uri string) string {
	if isView(uri) || p.shared[uri] {
		return resourceRef{server, uri}.listed()
	}
	return uri
}

// link returns the URI to use for a resource in an app's result: the listed one, or, if another app lists a resource
// with the same URI, one that contains the app.
func (p *resourceURIs) link(server, uri string) string {
	if at, ok := p.lookup(uri, core.NormalizeURI(uri)); ok && at.server != server {
		return resourceRef{server, uri}.listed()
	}
	return p.listed(server, uri)
}

// find returns the app that has a resource, and the app's own URI for it. named reports whether uri contains the app. A
// URI that is not listed belongs to the app with a matching template, or else to the only app with resources, or to the
// app named by the URI's host.
func (p *resourceURIs) find(uri string) (at resourceRef, named bool, err error) {
	normal := core.NormalizeURI(uri)
	if at, ok := p.lookup(uri, normal); ok {
		return at, p.listed(at.server, at.uri) != at.uri, nil
	}
	if isView(uri) {
		if at, named, ok := p.findView(uri, normal); ok {
			return at, named, nil
		}
	}
	if rest, ok := strings.CutPrefix(uri, perApp); ok {
		server, inner, ok := strings.Cut(rest, "/")
		if _, owns := p.owners[server]; ok && owns && inner != "" {
			return resourceRef{server, inner}, true, nil
		}
		return resourceRef{}, false, noResource(uri)
	}
	if p.shared[uri] || p.shared[normal] {
		return resourceRef{}, false, core.Errorf(core.CodeResourceNotFound, "several apps have a resource %.200q; include the app in the URI, as in %.200s", uri, resourceRef{"<app>", uri}.listed()).
			WithDetails(map[string]any{"uri": uri})
	}
	fits := map[string]struct{}{}
	spaced := plainQuery(normal)
	for _, t := range p.patterns {
		if t.regexp.MatchString(normal) || t.regexp.MatchString(spaced) {
			fits[t.ref.server] = struct{}{}
		}
	}
	if len(fits) == 0 {
		fits = p.owners
		if host := hostOf(uri); len(fits) > 1 {
			if _, ok := p.owners[host]; ok {
				return resourceRef{host, uri}, false, nil
			}
		}
	}
	if len(fits) != 1 {
		return resourceRef{}, false, noResource(uri)
	}
	for server := range fits {
		at = resourceRef{server, uri}
	}
	return at, false, nil
}

// plainQuery replaces each + in the query with %20, which templates match. Forms and many libraries encode a space as
// + (WHATWG URL, 5.2). The app still receives the original URI.
func plainQuery(uri string) string {
	path, query, ok := strings.Cut(uri, "?")
	if !ok {
		return uri
	}
	return path + "?" + strings.ReplaceAll(query, "+", "%20")
}

// findView finds a view by its own URI if only one app has it, or by an unlisted URI that contains the app.
func (p *resourceURIs) findView(uri, normal string) (at resourceRef, named, ok bool) {
	if at := p.views[normal]; at.server != "" {
		return at, false, true
	}
	server, inner, _ := strings.Cut(strings.TrimPrefix(uri, viewScheme), "/")
	if _, owns := p.owners[server]; owns && inner != "" {
		return resourceRef{server, viewScheme + inner}, true, true
	}
	return resourceRef{}, false, false
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

// view replaces the URI of the view in a tool's definition with the listed one.
func (p *resourceURIs) view(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
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

// relinked replaces the URIs in a content part of server with the listed ones.
func (p *resourceURIs) relinked(server string, item json.RawMessage) (json.RawMessage, error) {
	uri := func(value json.RawMessage) (json.RawMessage, error) {
		var text string
		_ = json.Unmarshal(value, &text) // anything but a string is left unchanged
		if p.link(server, text) == text {
			return value, nil
		}
		return json.Marshal(p.link(server, text))
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

// mentions reports whether a result may contain a URI that has to be changed.
func (p *resourceURIs) mentions(answer json.RawMessage) bool {
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
