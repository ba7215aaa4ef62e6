package tools

import (
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

// Views decides what a caller may see. *view.Registry implements it.
type Views interface {
	// Of returns the views that apply to the caller, or nil for a caller who sees everything. It returns the same
	// pointer until a view changes.
	Of(c core.Caller) *view.Set
	// Watch calls changed, which must not block, after views of a workspace have changed; "" means all workspaces.
	Watch(changed func(workspace string)) (stop func())
}

// viewsOf returns the views that apply to a caller. Everything that is listed, found or called goes through the lists
// that they narrow (lists), or through the mask of the server's own tools.
func (n *Namespace) viewsOf(c core.Caller) *view.Set {
	if n.views == nil {
		return nil
	}
	return n.views.Of(c)
}

// showsSystem reports whether the caller's views show one of the server's own tools. The tools that find and call
// other tools, and the one that reads the rest of long results, are always shown: they only reach what the views
// show.
func (n *Namespace) showsSystem(views *view.Set, i int) bool {
	return n.system[i].isSurface() || views.Shows(n.own[i].Tool)
}

// Narrowed reports whether views narrow what a caller sees.
func (n *Namespace) Narrowed(c core.Caller) bool { return n.viewsOf(c) != nil }

// WatchViews calls changed, which must not block, after views of a workspace have changed.
func (n *Namespace) WatchViews(workspace string, changed func()) (stop func()) {
	if n.views == nil {
		return func() {}
	}
	return n.views.Watch(func(of string) {
		if of == "" || of == workspace {
			changed()
		}
	})
}

// ShowsTool reports whether a caller sees a tool. name is the app's own name for it, or the full name if server is
// "".
func (n *Namespace) ShowsTool(c core.Caller, server, name string) bool {
	views := n.viewsOf(c)
	if views == nil {
		return true
	}
	full := name
	if server != "" {
		full = core.Tool{Server: server, Name: name}.FullName()
	}
	if server, name, _ = strings.Cut(full, "__"); server == SystemServer {
		for i, s := range n.system {
			if s.Name == name {
				return n.showsSystem(views, i)
			}
		}
		return false
	}
	offer := n.apps.Offer(c.Workspace.ID, nil)
	if n.accounts != nil {
		offer = n.accounts.Offer(c, "", "", offer)
	}
	for _, t := range offer.Tools {
		if t.FullName() == full {
			return views.Shows(t)
		}
	}
	return views.ShowsUnread(server, name)
}

// ShowsEvent reports whether a caller may receive an event with that data. An event about a tool is only for those
// who see the tool.
func (n *Namespace) ShowsEvent(c core.Caller, data json.RawMessage) bool {
	var about struct{ Server, Tool string }
	if !n.Narrowed(c) || json.Unmarshal(data, &about) != nil || about.Tool == "" {
		return true
	}
	return n.ShowsTool(c, about.Server, about.Tool)
}
