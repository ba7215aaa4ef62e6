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

// mergedLists contains the lists of all apps in a workspace under the names that callers see: tools and prompts have
// their app's prefix. The lists are rebuilt when the offer changes. Everything but arrays is immutable.
type mergedLists struct {
	offer   *core.Offer
	shown   view.Narrowed // the part of the offer that the views show
	tools   []Listed
	byName  map[string]*callable
	bare    map[string][]*callable // tools by the apps' own names
	items   map[core.Kind][]Item
	prompts map[string]core.Prompt // by full name
	held    map[string]string      // why a tool is held back, by full name
	uris    *resourceURIs

	mu     sync.Mutex
	arrays map[arrayKey]json.RawMessage

	search func() *ranking.Index // over tools, followed by the server's own tools
}

// callable is a tool with the data that each call to it needs.
type callable struct {
	core.Tool
	full     string // FullName
	quoted   []byte // the bare name as JSON
	approval bool   // calls wait for an approval
	listed   string // the name it is listed under; a view may have changed it
}

// arrayKey identifies a list as one class of callers sees it. own has a bit for each of the server's own tools that
// the list contains.
type arrayKey struct {
	kind      core.Kind
	own       uint64
	stateless bool
	search    bool // for SurfaceSearch
}

// listsKey identifies the callers who share the same lists.
type listsKey struct {
	workspace string
	views     *view.Set // nil for callers who see everything
}

// Item is one tool, prompt, resource or resource template as callers see it. It is as its app wrote it, except for
// Name, which is a full name, a URI or a URI template.
type Item struct {
	Server string
	Name   string
	Raw    json.RawMessage
}

// ownListsKey identifies the merged lists for an offer that differs from the workspace's.
type ownListsKey struct {
	listsKey
	offer *core.Offer
}

// maxOwnLists limits how many merged lists are kept for offers that differ from the workspace's.
const maxOwnLists = 256

// lists returns the merged lists of a workspace as the caller of a request sees them from its client, with its accounts.
// They are only rebuilt if the offer or the caller's views have changed. Anything that is not in them does not exist for
// the caller.
func (n *Namespace) lists(c core.Caller, from From) *mergedLists { return n.listsWith(c, from, "", "") }

// listsWith is like lists, for a call that uses one of the caller's accounts for an app; account is "" for any.
func (n *Namespace) listsWith(c core.Caller, from From, app, account string) *mergedLists {
	workspace := c.Workspace.ID
	k := listsKey{workspace, n.viewsOf(c)}
	offer := n.o.Apps.Offer(workspace, n.client(from))
	if n.o.Accounts != nil {
		offer = n.o.Accounts.Offer(c, app, account, offer)
	}
	n.mu.RLock()
	r := n.merged[k]
	n.mu.RUnlock()
	if r != nil && r.offer == offer {
		return r
	}
	if offer != n.o.Apps.Offer(workspace, nil) {
		return n.ownLists(ownListsKey{k, offer})
	}
	r = n.newMergedLists(offer, k.views)
	n.forgetOwn(func(own listsKey) bool { return own == k }) // outdated as well, and possibly no longer needed
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(r.tools)+len(r.items) == 0 && k.views == nil {
		delete(n.merged, k) // an empty workspace takes no memory
	} else {
		n.merged[k] = r
	}
	return r
}

// ownLists returns the merged lists for an offer that differs from the workspace's.
func (n *Namespace) ownLists(k ownListsKey) *mergedLists {
	if r, ok := n.separate.Get(k); ok {
		return r
	}
	r := n.newMergedLists(k.offer, k.views)
	n.separate.Add(k, r)
	return r
}

// forgetOwn drops lists for offers that differ from their workspace's.
func (n *Namespace) forgetOwn(outdated func(listsKey) bool) {
	for _, k := range n.separate.Keys() {
		if outdated(k.listsKey) {
			n.separate.Remove(k)
		}
	}
}

// forgetViews drops the narrowed lists when views have changed.
func (n *Namespace) forgetViews(string) {
	n.forgetOwn(func(k listsKey) bool { return k.views != nil })
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.merged, func(k listsKey, _ *mergedLists) bool { return k.views != nil })
}

// newMergedLists merges what views show of the apps' lists, and adds the app's prefix to tools and prompts.
func (n *Namespace) newMergedLists(offer *core.Offer, views *view.Set) *mergedLists {
	shown := views.Narrow(offer)
	o := shown.Offer
	r := &mergedLists{
		offer: offer, shown: shown, uris: newResourceURIs(o), tools: make([]Listed, 0, len(o.Tools)), byName: make(map[string]*callable, len(o.Tools)), bare: make(map[string][]*callable, len(o.Tools)),
		items: map[core.Kind][]Item{}, held: make(map[string]string, len(o.Held)), prompts: make(map[string]core.Prompt, len(o.Prompts)), arrays: map[arrayKey]json.RawMessage{},
	}
	labels := shown.Labels()
	for i, t := range o.Tools {
		raw, err := n.listedTool(r, t, labels[i])
		if err != nil {
			n.o.Logger.Warn("left out a tool, whose definition cannot be read", "server", t.Server, "tool", t.Name, "error", err)
			continue
		}
		raw = n.visible(raw, t.Server, t.Name)
		r.tools = append(r.tools, Listed{Name: labels[i].Name, Tool: t, Raw: raw, session: sessionForm(raw)})
		quoted, _ := json.Marshal(t.Name) // a string always marshals
		one := &callable{t, t.FullName(), quoted, n.o.Approvals != nil && n.o.Approvals.Needs(t), labels[i].Name}
		r.byName[one.full], r.byName[t.LongName()], r.byName[labels[i].Name] = one, one, one
		if one.full != t.LongName() {
			r.byName[t.Server+"__"+one.full] = one // for callers who put the server name before the listed name
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
			n.o.Logger.Warn("left out a prompt, whose definition cannot be read", "server", p.Server, "prompt", p.Name, "error", err)
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

// listedTool returns the definition of a tool with the name and description that callers see.
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
		n.o.Logger.Warn("left out an item, whose definition cannot be read", "list", kind, "server", i.Server, "name", i.Name, "error", err)
		return
	}
	i.Raw = n.visible(raw, i.Server, i.Name)
	r.items[kind] = append(r.items[kind], i)
}

// visible applies visibleText to a definition, and logs a warning if that changed it.
func (n *Namespace) visible(raw json.RawMessage, server, name string) json.RawMessage {
	visible, changed := visibleText(raw)
	if changed {
		n.o.Logger.Warn("hidden characters in a description are shown as their code points", "server", server, "name", name)
	}
	return visible
}

// Mirrors returns the arguments of a tool that requests must repeat in headers. It returns nil if there are none, or if
// there is no such tool.
func (n *Namespace) Mirrors(c core.Caller, from From, name string) []core.Mirror {
	if tool := n.lists(c, from).tool(name, nil); tool != nil {
		return tool.Mirrors
	}
	return nil
}

// Prompts returns the prompts that c sees, by server name and then in each app's own order.
func (n *Namespace) Prompts(c core.Caller) []Item { return n.items(c, core.KindPrompts) }

// Resources returns the resources that c sees. Their URIs are the apps' own. A URI that two apps use is listed once
// per app, as ropewalk://<server>/<uri>.
func (n *Namespace) Resources(c core.Caller) []Item { return n.items(c, core.KindResources) }

// Templates returns the resource templates that c sees. They are named like resources.
func (n *Namespace) Templates(c core.Caller) []Item { return n.items(c, core.KindTemplates) }

func (n *Namespace) items(c core.Caller, kind core.Kind) []Item {
	return slices.Clone(n.lists(c, From{}).items[kind])
}

// ItemsFor returns one of the lists that c sees from its client, in the order of ListJSON. The caller must not modify
// it.
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

// Missing returns the apps whose tools are missing from c's lists because the apps are starting or broken.
func (n *Namespace) Missing(c core.Caller) []core.MissingApp {
	views := n.viewsOf(c)
	return slices.DeleteFunc(n.o.Apps.Missing(c.Workspace.ID), func(a core.MissingApp) bool { return views != nil && !views.ShowsApp(a.Name) })
}

// ListJSON returns one of the lists that c sees from its client as a JSON array. All callers who see the same list
// share the array until something changes, so it must not be modified.
func (n *Namespace) ListJSON(c core.Caller, from From, kind core.Kind) json.RawMessage {
	r := n.lists(c, from)
	k := arrayKey{kind: kind}
	if kind == core.KindTools {
		n.seen(c)
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

// withUsableSchema compiles a tool's input schema ahead of calls. If the schema is too complex to check, it is
// replaced in the tool's definition by one that accepts every object, because models and clients could not use it
// either.
func (n *Namespace) withUsableSchema(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
	if !n.validator.TooComplex(t.Schema) {
		return raw, nil
	}
	n.o.Logger.Warn("replaced a tool's input schema, which is too complex to check", "server", t.Server, "tool", t.Name)
	return rawjson.Set(raw, rawjson.Member{Name: "inputSchema", Value: json.RawMessage(`{"type":"object"}`)})
}

// tool finds a tool by its full name, or by its app's own name for it, which the views of MCP Apps use. The app's own
// name is accepted if only one app has it, or only one of the apps whose views the session has read. It returns nil
// if there is no such tool.
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
