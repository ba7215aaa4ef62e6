package tools

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// Instructions returns the instructions of the running apps of which c sees a tool, a prompt or a resource,
// by server name. Characters that people do not see are written as in descriptions. An app with tools that
// are held back is left out: what it states about itself may have changed with them.
func (n *Namespace) Instructions(c core.Caller) []core.Instructions {
	all := n.apps.Instructions(c.Workspace.ID)
	if len(all) == 0 {
		return nil
	}
	offer := n.lists(c.Workspace.ID, From{}).offer
	var seen []core.Instructions
	for _, one := range all {
		if !offers(offer, one.Server) {
			continue
		}
		if text := strings.TrimSpace(showHidden(one.Text)); text != "" {
			seen = append(seen, core.Instructions{Server: one.Server, Text: text})
		}
	}
	return seen
}

// offers reports whether callers see something of an app, and all of its tools.
func offers(o *core.Offer, server string) bool {
	if slices.ContainsFunc(o.Held, func(t core.HeldTool) bool { return t.Server == server }) {
		return false
	}
	return slices.ContainsFunc(o.Tools, func(t core.Tool) bool { return t.Server == server }) ||
		slices.ContainsFunc(o.Prompts, func(p core.Prompt) bool { return p.Server == server }) ||
		slices.ContainsFunc(o.Resources, func(r core.Resource) bool { return r.Server == server }) ||
		slices.ContainsFunc(o.Templates, func(t core.ResourceTemplate) bool { return t.Server == server })
}
