package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// Set holds the views that apply to a caller's requests. It shows a tool only if all of them show it. A nil Set shows
// everything. A Set is immutable, and a caller gets the same pointer until a view changes.
type Set struct {
	views []*View // first those of the caller's role and groups, then the API key's, then the address's
	none  bool    // one of the views does not exist: nothing is shown
}

func (s *Set) shows(what subject) bool {
	return s == nil || !s.none && !slices.ContainsFunc(s.views, func(v *View) bool { return !v.shows(what) })
}

// Shows reports whether a tool is shown.
func (s *Set) Shows(t core.Tool) bool {
	if s == nil {
		return true
	}
	return s.shows(subject{server: t.Server, full: t.FullName(), long: t.LongName(), hints: hintsOf(t.Raw)})
}

// ShowsByName is like Shows, for a tool whose annotations are unknown. If only the annotations could decide, the tool
// is not shown.
func (s *Set) ShowsByName(server, name string) bool {
	return s.shows(namedSubject(server, name, false))
}

// MayShow reports whether a tool with that name is shown if it has the right annotations.
func (s *Set) MayShow(server, name string) bool {
	if s.shows(namedSubject(server, name, true)) {
		return true
	}
	for _, v := range s.views {
		for full, as := range v.Tools {
			if own, ok := strings.CutPrefix(full, server+separator); ok && as.Name == name && s.shows(namedSubject(server, own, true)) {
				return true
			}
		}
	}
	return false
}

// ShowsApp reports whether the prompts, resources and instructions of an app without tools are shown. Those of an app
// with tools are shown if one of its tools is; see Narrowed.ShowsApp.
func (s *Set) ShowsApp(server string) bool { return s.MayShow(server, "") }

func namedSubject(server, name string, assume bool) subject {
	t := core.Tool{Server: server, Name: name}
	return subject{server: server, full: t.FullName(), long: t.LongName(), assume: assume}
}

// Surface returns how the views list tools to clients that do not choose; "" if no view says so. Later views override
// earlier ones.
func (s *Set) Surface() (surface string) {
	if s == nil {
		return ""
	}
	for _, v := range s.views {
		surface = cmp.Or(v.Surface, surface)
	}
	return surface
}

// Narrowed is the part of an offer that a Set shows.
type Narrowed struct {
	*core.Offer
	set  *Set
	apps map[string]bool // the apps with tools, and whether one of their tools is shown
}

// Narrow returns the part of an offer that is shown. A nil Set returns the offer itself.
func (s *Set) Narrow(o *core.Offer) Narrowed {
	if s == nil {
		return Narrowed{Offer: o}
	}
	n := Narrowed{Offer: &core.Offer{}, set: s, apps: map[string]bool{}}
	for _, t := range o.Tools {
		shown := s.Shows(t)
		if shown {
			n.Tools = append(n.Tools, t)
		}
		n.apps[t.Server] = n.apps[t.Server] || shown
	}
	for _, h := range o.Held {
		if s.ShowsByName(h.Server, h.Name) {
			n.Held = append(n.Held, h)
		}
	}
	n.Prompts = shownOf(o.Prompts, func(p core.Prompt) bool { return n.ShowsApp(p.Server) })
	n.Resources = shownOf(o.Resources, func(r core.Resource) bool { return n.ShowsApp(r.Server) })
	n.Templates = shownOf(o.Templates, func(t core.ResourceTemplate) bool { return n.ShowsApp(t.Server) })
	return n
}

func shownOf[T any](all []T, shown func(T) bool) (kept []T) {
	for _, one := range all {
		if shown(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// ShowsApp reports whether prompts, resources and notifications of an app are shown.
func (n Narrowed) ShowsApp(server string) bool {
	if n.set == nil {
		return true
	}
	if shown, hasTools := n.apps[server]; hasTools {
		return shown
	}
	return n.set.ShowsApp(server)
}

// Labels returns how the tools of the offer are presented, in the same order. Each label has the listed name. A new
// name that another tool already has is not used, because every tool can also be called by its own name.
func (n Narrowed) Labels() []core.Relabel {
	labels, taken := make([]core.Relabel, len(n.Tools)), make(map[string]bool, len(n.Tools))
	for _, t := range n.Tools {
		taken[t.FullName()] = true
	}
	for i, t := range n.Tools {
		if n.set != nil {
			labels[i] = n.set.relabel(t)
		}
		name := t.Server + separator + labels[i].Name
		if labels[i].Name == "" || taken[name] {
			name = t.FullName()
		}
		labels[i].Name, taken[name] = name, true
	}
	return labels
}

// relabel returns the name and description that the views give a tool. Later views override earlier ones.
func (s *Set) relabel(t core.Tool) (as core.Relabel) {
	for _, v := range s.views {
		label := v.relabel(t)
		if label.Name != "" {
			as.Name = label.Name
		}
		if label.Description != "" {
			as.Description = label.Description
		}
	}
	return as
}
