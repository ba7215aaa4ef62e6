package tools

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// mergedLists are the lists of all apps of a workspace under the names that callers see: tools and prompts
// with the prefix of their app. They are built again when the offer changes; except for arrays they are
// immutable.
type mergedLists struct {
	offer   *core.Offer
	tools   []Listed
	byName  map[string]*callable
	bare    map[string][]*callable // by their apps' own names
	items   map[core.Kind][]Item
	prompts map[string]core.Prompt // by full name
	held    map[string]string      // why a tool is held back, by full name
	uris    *resourceURIs

	mu     sync.Mutex
	arrays map[arrayKey]json.RawMessage
}

// callable is a tool with what each call of it needs.
type callable struct {
	core.Tool
	quoted   []byte // the bare name as JSON
	approval bool   // its calls wait for a person
}

// arrayKey is a list as one class of callers sees it: own has a bit for each of the service's own tools
// that is among them.
type arrayKey struct {
	kind core.Kind
	own  uint64
}

// Item is one prompt, resource or resource template as callers see it. Except for its name, which is a
// prompt's full name, a URI or a URI template, it is as its app wrote it.
type Item struct {
	Server string
	Name   string
	Raw    json.RawMessage
}

// lists returns the merged lists of a workspace as the client of a request sees them. They are built again
// only when the offer has changed.
func (n *Namespace) lists(workspace string, from From) *mergedLists {
	offer := n.apps.Offer(workspace, n.client(from))
	n.mu.RLock()
	r := n.merged[workspace]
	n.mu.RUnlock()
	if r != nil && r.offer == offer {
		return r
	}
	if offer != n.apps.Offer(workspace, nil) {
		return n.ownLists(workspace, from, offer)
	}
	r = n.newMergedLists(offer)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mergedStateless, workspace) // outdated as well, and perhaps of no use any more
	if len(r.tools)+len(r.items) == 0 {
		delete(n.merged, workspace) // an empty workspace costs no memory
	} else {
		n.merged[workspace] = r
	}
	return r
}

// ownLists returns the merged lists of an offer that differs from the one of the workspace.
func (n *Namespace) ownLists(workspace string, from From, offer *core.Offer) *mergedLists {
	if s := from.Session; s != nil && !from.Stateless {
		r := s.merged.Load()
		if r == nil || r.offer != offer {
			r = n.newMergedLists(offer)
			s.merged.Store(r)
		}
		return r
	}
	n.mu.RLock()
	r := n.mergedStateless[workspace]
	n.mu.RUnlock()
	if r == nil || r.offer != offer {
		r = n.newMergedLists(offer)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mergedStateless[workspace] = r
	}
	return r
}

// newMergedLists merges the lists of the apps and renames tools and prompts with the prefix of their app.
func (n *Namespace) newMergedLists(o *core.Offer) *mergedLists {
	r := &mergedLists{
		offer: o, uris: newResourceURIs(o), tools: make([]Listed, 0, len(o.Tools)), byName: make(map[string]*callable, len(o.Tools)), bare: make(map[string][]*callable, len(o.Tools)),
		items: map[core.Kind][]Item{}, held: make(map[string]string, len(o.Held)), prompts: make(map[string]core.Prompt, len(o.Prompts)), arrays: map[arrayKey]json.RawMessage{},
	}
	for _, t := range o.Tools {
		raw, err := rawjson.Rename(t.Raw, "name", t.FullName())
		if err == nil {
			raw, err = withOriginalName(t, raw)
		}
		if err == nil {
			raw, err = r.uris.view(t, raw)
		}
		if err == nil {
			raw, err = n.withUsableSchema(t, raw)
		}
		if err != nil {
			n.log.Warn("tool left out: its description cannot be read", "server", t.Server, "tool", t.Name, "error", err)
			continue
		}
		raw = n.visible(raw, t.Server, t.Name)
		r.tools = append(r.tools, Listed{Name: t.FullName(), Tool: t, Raw: raw})
		quoted, _ := json.Marshal(t.Name) // a string always marshals
		one := &callable{t, quoted, n.approvals != nil && n.approvals.Needs(t)}
		r.byName[t.FullName()], r.byName[t.LongName()] = one, one
		r.bare[t.Name] = append(r.bare[t.Name], one)
	}
	for _, h := range o.Held {
		tool := core.Tool{Server: h.Server, Name: h.Name}
		r.held[tool.FullName()], r.held[tool.LongName()] = h.Reason, h.Reason
	}
	for _, p := range o.Prompts {
		r.prompts[p.FullName()] = p
		n.item(r, core.KindPrompts, Item{p.Server, p.FullName(), p.Raw}, "name")
	}
	for _, one := range o.Resources {
		n.item(r, core.KindResources, Item{one.Server, r.uris.listed(one.Server, one.URI), one.Raw}, "uri")
	}
	for _, one := range o.Templates {
		n.item(r, core.KindTemplates, Item{one.Server, r.uris.listed(one.Server, one.Template), one.Raw}, "uriTemplate")
	}
	return r
}

// item adds an item under the name that callers see.
func (n *Namespace) item(r *mergedLists, kind core.Kind, i Item, member string) {
	raw, err := rawjson.Rename(i.Raw, member, i.Name)
	if err != nil {
		n.log.Warn("item left out: its description cannot be read", "list", kind, "server", i.Server, "name", i.Name, "error", err)
		return
	}
	i.Raw = n.visible(raw, i.Server, i.Name)
	r.items[kind] = append(r.items[kind], i)
}

// visible returns a definition with visibleText, and warns when that changed it.
func (n *Namespace) visible(raw json.RawMessage, server, name string) json.RawMessage {
	visible, changed := visibleText(raw)
	if changed {
		n.log.Warn("hidden characters in a description are shown as their code points", "server", server, "name", name)
	}
	return visible
}

// Mirrors returns the arguments of a tool that requests repeat in headers; nil when there are none, or no
// such tool.
func (n *Namespace) Mirrors(c core.Caller, from From, name string) []core.Mirror {
	if tool := n.lists(c.Workspace.ID, from).tool(name, nil); tool != nil {
		return tool.Mirrors
	}
	return nil
}

// Prompts returns the prompts that c sees, by server name and then in each app's own order.
func (n *Namespace) Prompts(c core.Caller) []Item { return n.items(c, core.KindPrompts) }

// Resources returns the resources that c sees. Their URIs are the apps' own; one that two apps have is
// listed per app, as ropewalk://<server>/<uri>.
func (n *Namespace) Resources(c core.Caller) []Item { return n.items(c, core.KindResources) }

// Templates returns the resource templates that c sees, named like resources.
func (n *Namespace) Templates(c core.Caller) []Item { return n.items(c, core.KindTemplates) }

func (n *Namespace) items(c core.Caller, kind core.Kind) []Item {
	return slices.Clone(n.lists(c.Workspace.ID, From{}).items[kind])
}

// ListJSON returns one of the lists that c sees from its client as a JSON array. It is marshalled once for all callers that
// see the same, until something changes, and must not be written to.
func (n *Namespace) ListJSON(c core.Caller, from From, kind core.Kind) json.RawMessage {
	r := n.lists(c.Workspace.ID, from)
	k := arrayKey{kind: kind}
	if kind == core.KindTools {
		k.own = n.mask(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if array, ok := r.arrays[k]; ok {
		return array
	}
	var parts []json.RawMessage
	if kind == core.KindTools {
		for _, t := range n.list(r, k.own) {
			parts = append(parts, t.Raw)
		}
	} else {
		for _, i := range r.items[kind] {
			parts = append(parts, i.Raw)
		}
	}
	array := rawjson.Array(parts)
	r.arrays[k] = array
	return array
}

// withUsableSchema compiles a tool's input schema, so that calls find it compiled. A schema that is too
// complex to check is replaced in the tool's description by one that accepts every object, because models
// and clients could not use it either.
func (n *Namespace) withUsableSchema(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
	if !n.validator.TooComplex(t.Schema) {
		return raw, nil
	}
	n.log.Warn("input schema of a tool replaced: it is too complex to check", "server", t.Server, "tool", t.Name)
	return rawjson.Set(raw, rawjson.Member{Name: "inputSchema", Value: json.RawMessage(`{"type":"object"}`)})
}
