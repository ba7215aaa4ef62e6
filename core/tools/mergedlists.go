package tools

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tools/ranking"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

// mergedLists are the lists of all apps of a workspace under the names that callers see: tools and prompts
// with the prefix of their app. They are built again when the offer changes; except for arrays they are
// immutable.
type mergedLists struct {
	offer   *core.Offer
	views   *view.Set     // that narrow the offer
	shown   view.Narrowed // what is left of it
	tools   []Listed
	byName  map[string]*callable
	bare    map[string][]*callable // by their apps' own names
	items   map[core.Kind][]Item
	prompts map[string]core.Prompt // by full name
	held    map[string]string      // why a tool is held back, by full name
	uris    *resourceURIs

	mu     sync.Mutex
	arrays map[arrayKey]json.RawMessage

	search func() *ranking.Index // of tools, and then of the service's own
}

// callable is a tool with what each call of it needs.
type callable struct {
	core.Tool
	quoted   []byte // the bare name as JSON
	approval bool   // its calls wait for a person
	listed   string // the name that it is listed under, which a view may have given it
}

// arrayKey is a list as one class of callers sees it: own has a bit for each of the service's own tools
// that is among them.
type arrayKey struct {
	kind      core.Kind
	own       uint64
	stateless bool
	search    bool // of the search surface
}

// listsKey is who gets the same lists.
type listsKey struct {
	workspace string
	views     *view.Set // of the callers; nil for those who see everything
}

// Item is one tool, prompt, resource or resource template as callers see it. Except for its name, which is a full name,
// a URI or a URI template, it is as its app wrote it.
type Item struct {
	Server string
	Name   string
	Raw    json.RawMessage
}

// lists returns the merged lists of a workspace as the caller of a request sees them from its client. They are built again
// only when the offer or the views of the caller have changed. What is not in them does not exist for the caller.
func (n *Namespace) lists(c core.Caller, from From) *mergedLists {
	workspace := c.Workspace.ID
	k := listsKey{workspace, n.viewsOf(c)}
	offer := n.apps.Offer(workspace, n.client(from))
	n.mu.RLock()
	r := n.merged[k]
	n.mu.RUnlock()
	if r != nil && r.offer == offer {
		return r
	}
	if offer != n.apps.Offer(workspace, nil) {
		return n.ownLists(k, from, offer)
	}
	r = n.newMergedLists(offer, k.views)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mergedStateless, k) // outdated as well, and perhaps of no use any more
	if len(r.tools)+len(r.items) == 0 && k.views == nil {
		delete(n.merged, k) // an empty workspace costs no memory
	} else {
		n.merged[k] = r
	}
	return r
}

// ownLists returns the merged lists of an offer that differs from the one of the workspace.
func (n *Namespace) ownLists(k listsKey, from From, offer *core.Offer) *mergedLists {
	if s := from.Session; s != nil && !from.Stateless {
		r := s.merged.Load()
		if r == nil || r.offer != offer || r.views != k.views {
			r = n.newMergedLists(offer, k.views)
			s.merged.Store(r)
		}
		return r
	}
	n.mu.RLock()
	r := n.mergedStateless[k]
	n.mu.RUnlock()
	if r == nil || r.offer != offer {
		r = n.newMergedLists(offer, k.views)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mergedStateless[k] = r
	}
	return r
}

// forgetViews drops the lists that views narrowed, before views change.
func (n *Namespace) forgetViews(string) {
	narrowed := func(k listsKey, _ *mergedLists) bool { return k.views != nil }
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.merged, narrowed)
	maps.DeleteFunc(n.mergedStateless, narrowed)
}

// newMergedLists merges the lists of the apps, as far as views show them, and renames tools and prompts with the prefix of
// their app.
func (n *Namespace) newMergedLists(offer *core.Offer, views *view.Set) *mergedLists {
	shown := views.Narrow(offer)
	o := shown.Offer
	r := &mergedLists{
		offer: offer, views: views, shown: shown, uris: newResourceURIs(o), tools: make([]Listed, 0, len(o.Tools)), byName: make(map[string]*callable, len(o.Tools)), bare: make(map[string][]*callable, len(o.Tools)),
		items: map[core.Kind][]Item{}, held: make(map[string]string, len(o.Held)), prompts: make(map[string]core.Prompt, len(o.Prompts)), arrays: map[arrayKey]json.RawMessage{},
	}
	labels := shown.Labels()
	for i, t := range o.Tools {
		raw, err := n.listedTool(r, t, labels[i])
		if err != nil {
			n.log.Warn("tool left out: its description cannot be read", "server", t.Server, "tool", t.Name, "error", err)
			continue
		}
		raw = n.visible(raw, t.Server, t.Name)
		r.tools = append(r.tools, Listed{Name: labels[i].Name, Tool: t, Raw: raw, session: sessionForm(raw)})
		quoted, _ := json.Marshal(t.Name) // a string always marshals
		one := &callable{t, quoted, n.approvals != nil && n.approvals.Needs(t), labels[i].Name}
		r.byName[t.FullName()], r.byName[t.LongName()], r.byName[labels[i].Name] = one, one, one
		if t.FullName() != t.LongName() {
			r.byName[t.Server+"__"+t.FullName()] = one // for callers who name the server and then use the listed name
		}
		r.bare[t.Name] = append(r.bare[t.Name], one)
	}
	for _, h := range o.Held {
		tool := core.Tool{Server: h.Server, Name: h.Name}
		r.held[tool.FullName()], r.held[tool.LongName()] = h.Reason, h.Reason
	}
	for _, p := range o.Prompts {
		r.prompts[p.FullName()], r.prompts[p.LongName()] = p, p
		raw, err := withOriginalName(p, p.FullName(), p.Raw)
		if err != nil {
			n.log.Warn("prompt left out: its description cannot be read", "server", p.Server, "prompt", p.Name, "error", err)
			continue
		}
		n.item(r, core.KindPrompts, Item{p.Server, p.FullName(), raw}, "name")
	}
	for _, one := range o.Resources {
		n.item(r, core.KindResources, Item{one.Server, r.uris.listed(one.Server, one.URI), one.Raw}, "uri")
	}
	for _, one := range o.Templates {
		n.item(r, core.KindTemplates, Item{one.Server, r.uris.listed(one.Server, one.Template), one.Raw}, "uriTemplate")
	}
	r.search = sync.OnceValue(func() *ranking.Index { return newIndex(slices.Concat(r.tools, n.own)) })
	return r
}

// listedTool returns the definition of a tool with the names, and the description, that callers see.
func (n *Namespace) listedTool(r *mergedLists, t core.Tool, as core.Relabel) (raw json.RawMessage, err error) {
	if raw, err = rawjson.Rename(listedForm(t), "name", as.Name); err != nil {
		return nil, err
	}
	if as.Description != "" {
		if raw, err = rawjson.Set(raw, rawjson.Member{Name: "description", Value: rawjson.Quote(as.Description)}); err != nil {
			return nil, err
		}
	}
	for _, edit := range []func(core.Tool, json.RawMessage) (json.RawMessage, error){
		func(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
			return withOriginalName(t, as.Name, raw)
		},
		r.uris.view, n.withUsableSchema, n.withUsableOutput,
	} {
		if raw, err = edit(t, raw); err != nil {
			return nil, err
		}
	}
	return raw, nil
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
	if tool := n.lists(c, from).tool(name, nil); tool != nil {
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
	return slices.Clone(n.lists(c, From{}).items[kind])
}

// ItemsFor returns one of the lists that c sees from its client, in the order of ListJSON. It must not be written to.
func (n *Namespace) ItemsFor(c core.Caller, from From, kind core.Kind) []Item {
	if kind != core.KindTools {
		return n.lists(c, from).items[kind]
	}
	list := n.ListFor(c, from)
	items := make([]Item, len(list))
	for i, t := range list {
		items[i] = Item{t.Tool.Server, t.Name, t.RawFor(from)}
	}
	return items
}

// ListJSON returns one of the lists that c sees from its client as a JSON array. It is marshalled once for all callers that
// see the same, until something changes, and must not be written to.
func (n *Namespace) ListJSON(c core.Caller, from From, kind core.Kind) json.RawMessage {
	r := n.lists(c, from)
	k := arrayKey{kind: kind}
	if kind == core.KindTools {
		k.own, k.stateless = n.maskFor(c, from), from.Stateless
		k.search = n.searches(r, k.own, from)
	}
	return n.array(r, k)
}

func (n *Namespace) array(r *mergedLists, k arrayKey) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if array, ok := r.arrays[k]; ok {
		return array
	}
	var parts []json.RawMessage
	if k.kind == core.KindTools {
		for _, t := range n.list(r, k.own, k.search) {
			parts = append(parts, t.RawFor(From{Stateless: k.stateless}))
		}
	} else {
		for _, i := range r.items[k.kind] {
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

// tool finds a tool by its name in the workspace, or by its app's own name for it, which views of MCP Apps
// use. An app's own name is accepted when only one app has it, or only one of those whose views the session
// has read. It is nil when there is no such tool.
func (r *mergedLists) tool(name string, s *Session) *callable {
	if tool := r.byName[name]; tool != nil {
		return tool
	}
	candidates := r.bare[name]
	if len(candidates) == 1 {
		return candidates[0]
	}
	var found *callable
	for _, tool := range candidates {
		if s == nil || !s.viewed(tool.Server) {
			continue
		}
		if found != nil {
			return nil
		}
		found = tool
	}
	return found
}
