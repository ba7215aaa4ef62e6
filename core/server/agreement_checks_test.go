package server_test

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// check compares the list of one endpoint with the tools that another endpoint lists, finds and calls.
func (a *agreement) check(one, other endpoint, who agreeing, view, surface, tool string) {
	listed := one.list(who, view, "full")
	if also := other.list(who, view, "full"); !slices.Equal(listed, also) {
		a.Errorf("%s lists %v, %s lists %v", one.name, listed, other.name, also)
	}
	if surface == "search" && other.name != "/v1" {
		favourite := func(name string) bool { return name == "a__x" || name == "a__new" || strings.HasSuffix(name, "__y") }
		want := append(without(listed, func(name string) bool { return !favourite(name) }), "system__search_tools", "system__call_tool")
		if short := other.list(who, view, "search"); !slices.Equal(sorted(short), sorted(want)) {
			a.Errorf("%s lists %v on the search surface, not %v", other.name, short, want)
		}
	}
	for query, all := range map[string]bool{"": true, "reads letters": false} {
		hits := found(a.T, other.call(who, view, surface, "system__search_tools", `{"query":"`+query+`","limit":50}`))
		want := without(listed, func(name string) bool { return isForTools(name) || isForView(name) })
		if all && !slices.Equal(sorted(hits), want) {
			a.Errorf("%s finds %v, not %v", other.name, hits, want)
		}
		for _, hit := range hits {
			if !slices.Contains(want, hit) {
				a.Errorf("%s finds %s for %q, which is not listed", other.name, hit, query)
			}
		}
	}
	seen := slices.Contains(listed, tool) || tool == "a__x" && slices.Contains(listed, "a__new") // also callable by its own name
	for _, through := range []string{"", "system__call_tool"} {
		call := func(way endpoint, name string) outcome {
			if through == "" {
				return way.call(who, view, surface, name, `{}`)
			}
			o := way.call(who, view, surface, through, `{"name":"`+name+`"}`)
			o.text = strings.ReplaceAll(o.text, name, "TOOL")
			return o
		}
		isUnknown := func(way endpoint, o outcome) bool { // a stopped app explains itself for any name that the views may show
			return o.text == call(way, madeUp(tool)).text || o.text == call(way, "none__nosuchtool").text
		}
		got := call(other, tool)
		unknown := isUnknown(other, got)
		a.checkCall(other.name+" "+through, tool, seen, got, unknown)
		if tool == "system__manage_users" { // for callers who lack the role, the error of /v1 names the role (docs/api.md 4.2)
			continue
		}
		if again := call(one, tool); isUnknown(one, again) != unknown {
			a.Errorf("%s says %s, %s says %s", one.name, again.raw, other.name, got.raw)
		}
	}
}

// checkCall checks the outcome of a tool call; seen says whether the tool is listed.
func (a *agreement) checkCall(way, tool string, seen bool, got outcome, isUnknown bool) {
	explained := func() bool { // why a tool that the caller would see is not listed
		switch tool {
		case "b__z":
			return strings.Contains(got.raw, "held back")
		case "d__x":
			return strings.Contains(got.raw, "is stopped")
		case "system__manage_users":
			return strings.Contains(got.raw, "admin")
		}
		return false
	}
	switch {
	case seen && isUnknown:
		a.Errorf("%s: %s is listed and unknown: %s", way, tool, got.raw)
	case seen && !got.done && !strings.HasPrefix(tool, "system__"):
		a.Errorf("%s: %s is listed and fails: %s", way, tool, got.raw)
	case !seen && !isUnknown && !explained():
		a.Errorf("%s: %s is not listed, but not unknown either: %s", way, tool, got.raw)
	}
}

// checkChat compares the tools of a conversation with an endpoint's list.
func (a *agreement) checkChat(way endpoint, who agreeing, tool string, r *rand.Rand) {
	settings := []string{"", `,"disabledApps":["a"]`, `,"allowedTools":["b__*","system__s*","a__new"]`}[r.IntN(3)]
	allowed := func(name string) bool {
		switch {
		case strings.Contains(settings, "disabled"):
			return !strings.HasPrefix(name, "a__")
		case settings != "":
			return strings.HasPrefix(name, "b__") || strings.HasPrefix(name, "system__s") || name == "a__new"
		}
		return true
	}
	want := without(way.list(who, "", "full"), func(name string) bool { return isForView(name) || !allowed(name) })
	offered, got := a.chat(who, tool, `{}`, settings)
	if now := without(offered, isForTools); !slices.Equal(now, want) {
		a.Errorf("chat offers %v, not %v", now, want)
	}
	_, unknown := a.chat(who, madeUp(tool), `{}`, settings)
	seen := slices.Contains(want, tool) || tool == "a__x" && slices.Contains(want, "a__new")
	a.checkCall("chat", tool, seen, got, got.text == unknown.text)
	if !slices.Contains(want, "system__search") {
		return
	}
	_, search := a.chat(who, "system__search", `{"query":"","limit":100}`, settings)
	if hits := sorted(found(a.T, search)); !slices.Equal(hits, want) {
		a.Errorf("a search in chat finds %v, not %v", hits, want)
	}
}
