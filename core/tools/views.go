package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

// viewsOf returns the views that apply to a caller. Everything that is listed, found or called goes through the lists
// that they narrow (lists), or through the mask of the server's own tools.
func (n *Namespace) viewsOf(c core.Caller) *view.Set {
	if n.o.Views == nil {
		return nil
	}
	return n.o.Views.Of(c)
}

// showsSystem reports whether the caller's views show one of the server's own tools. The tools that find and call other
// tools, and the one that reads the rest of long results, are always shown: through them, a caller only reaches tools
// and results that the views show.
func (n *Namespace) showsSystem(views *view.Set, i int) bool {
	return n.system[i].isSurface() || views.Shows(n.own[i].Tool)
}

// Narrowed reports whether views narrow what a caller sees.
func (n *Namespace) Narrowed(c core.Caller) bool { return n.viewsOf(c) != nil }

// WatchViews calls changed, which must not block, after views of a workspace have changed.
func (n *Namespace) WatchViews(workspace string, changed func()) (stop func()) {
	if n.o.Views == nil {
		return func() {}
	}
	return n.o.Views.Watch(func(of string) {
		if of == "" || of == workspace {
			changed()
		}
	})
}

// ShowsTool reports whether a caller sees a tool under all of these names, such as its present name and an old one; ""
// counts as seen. A name is the app's own name for the tool, or the full name if server is "".
func (n *Namespace) ShowsTool(c core.Caller, server string, names ...string) bool {
	views := n.viewsOf(c)
	return views == nil || !slices.ContainsFunc(names, func(name string) bool { return name != "" && !n.showsTool(c, views, server, name) })
}

func (n *Namespace) showsTool(c core.Caller, views *view.Set, server, name string) bool {
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
	offer := n.o.Apps.Offer(c.Workspace.ID, nil)
	if n.o.Accounts != nil {
		offer = n.o.Accounts.Offer(c, "", "", offer)
	}
	for _, t := range offer.Tools {
		if t.FullName() == full {
			return views.Shows(t)
		}
	}
	return views.ShowsByName(server, name)
}

// ShowsEvent reports whether a caller may receive an event with that data. An event about a tool is only for those
// who see the tool.
func (n *Namespace) ShowsEvent(c core.Caller, data json.RawMessage) bool {
	var about struct{ Server, Tool, RenamedFrom string }
	if !n.Narrowed(c) || json.Unmarshal(data, &about) != nil || about.Tool == "" {
		return true
	}
	return n.ShowsTool(c, about.Server, about.Tool, about.RenamedFrom)
}
