package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/tools/ranking"
)

// Surface is a way to list tools to a client. On both surfaces, a caller can call every tool that it may see by name.
type Surface string

// The surfaces.
const (
	SurfaceFull   Surface = core.SurfaceFull
	SurfaceSearch Surface = core.SurfaceSearch
)

// SurfaceFor returns the surface for a client that does not choose one. The API key takes precedence, then the caller's
// views, then the workspace, then the configuration.
func (n *Namespace) SurfaceFor(c core.Caller) Surface {
	return Surface(cmp.Or(c.Scope.Surface, n.viewsOf(c).Surface(), n.o.Surfaces[c.Workspace.ID], n.o.Surface, core.SurfaceFull))
}

// The tools of SurfaceSearch.
const (
	searchToolsName = "search_tools"
	callToolName    = "call_tool"
)

// metaNeeds is the _meta member of a tool found by a search that lists what its calls need. The possible needs are
// "approval" if calls wait for a person, and "account" if the caller has to link an account first, or to choose one of
// several.
const metaNeeds = "ropewalk/needs"

// searches reports whether to show the list of SurfaceSearch: it was requested, and all tools together exceed the
// budget.
func (n *Namespace) searches(r *mergedLists, mask uint64, from From) bool {
	if from.Surface != SurfaceSearch || !n.o.Features.Enabled(config.FlagToolDiscovery) {
		return false
	}
	return n.o.Budget == 0 || Tokens(len(n.array(r, arrayKey{kind: core.KindTools, own: mask}))) > n.o.Budget
}

// Tokens estimates how many model tokens a number of bytes of JSON takes.
func Tokens(bytes int) int { return bytes / 4 }

// searchList returns the tools of SurfaceSearch.
func (n *Namespace) searchList(r *mergedLists, mask uint64) (list []Listed) {
	isFavourite := func(t Listed) bool { return n.favourites != nil && n.favourites.MatchString(t.Name) }
	for i, own := range n.own {
		if mask>>i&1 == 1 && (n.system[i].isListed(mask, true) || isFavourite(own)) {
			list = append(list, n.ownListed(i, own, mask))
		}
	}
	for _, t := range r.tools {
		if isFavourite(t) {
			list = append(list, t)
		}
	}
	return list
}

// SearchTools returns system__search_tools.
func (n *Namespace) SearchTools() System {
	return System{
		Name: searchToolsName, Title: "Search tools", ReadOnly: true, OnSearch: true,
		Description: "Finds tools in this workspace by what they do. Returns the best matches with their input schemas. " +
			"Call one with system__call_tool, or by its own name.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"what the tool should do, in a few words, in English unless the tools are described in another language, such as: create an issue"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":50,"default":5}},"required":["query"],"additionalProperties":false}`),
		Requirement: core.Requirement{Flags: []string{config.FlagToolDiscovery}},
		RunFrom: func(ctx context.Context, c core.Caller, from From, arguments json.RawMessage) (any, error) {
			in := struct {
				Query string `json:"query"`
				Limit int    `json:"limit"`
			}{Limit: 5}
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			return map[string]any{"tools": n.searchTools(ctx, c, from, in.Query, in.Limit)}, nil
		},
	}
}

// CallTool returns system__call_tool. Its calls are turned into calls to the tool in their arguments (see unwrap), so
// Run receives only calls that do not refer to another tool.
func (n *Namespace) CallTool() System {
	return System{
		Name: callToolName, Title: "Call a tool", OnSearch: true,
		Description: "Calls a tool that system__search_tools found.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"name":{"type":"string","minLength":1,"description":"the tool's full name, as system__search_tools returned it"},` +
			`"arguments":{"type":"object","description":"the arguments for that tool, as its inputSchema describes"}},"required":["name"],"additionalProperties":false}`),
		Requirement: core.Requirement{Flags: []string{config.FlagToolDiscovery}},
		Run: func(context.Context, core.Caller, json.RawMessage) (any, error) {
			return nil, core.Errorf(core.CodeBadRequest, "name must be another tool's name")
		},
	}
}

// Called returns the name of the tool that a call is for. For system__call_tool, that is the tool in its arguments.
func (n *Namespace) Called(c Call) string {
	n.unwrap(&c)
	return c.Name
}

// unwrap turns a call to system__call_tool into the call that it asks for, so that everything around a call (policy,
// pins, approval, audit, metrics) applies to that call. It reports whether it did. Any other call is left unchanged.
func (n *Namespace) unwrap(c *Call) bool {
	if c.Name != SystemServer+"__"+callToolName || !n.o.Features.Enabled(config.FlagToolDiscovery) {
		return false
	}
	var in map[string]json.RawMessage // not a struct: decoding into a struct ignores the case of names
	if json.Unmarshal(c.Arguments, &in) != nil {
		return false
	}
	name, arguments := rawjson.Text(in["name"]), in["arguments"]
	delete(in, "name")
	delete(in, "arguments")
	if len(in) > 0 || name == "" || name == c.Name {
		return false
	}
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	if arguments[0] != '{' {
		return false
	}
	c.Name, c.Arguments = name, arguments
	return true
}

// withView adds the tool's view to the result (MCP Apps), for a client that may not have the tool in its list.
func (r *Call) withView(result json.RawMessage) json.RawMessage {
	if r.tool == nil || r.tool.ViewURI == "" {
		return result
	}
	uri := rawjson.Quote(r.lists.uris.listed(r.server, r.tool.ViewURI))
	with, err := withMeta(result, rawjson.Member{Name: "ui", Value: json.RawMessage(`{"resourceUri":` + string(uri) + `}`)})
	if err != nil {
		return result
	}
	return with
}

// searchTools returns the tools that match a query, best first. It includes only tools that c sees from its client,
// and that a model may use. An empty query matches all tools.
func (n *Namespace) searchTools(ctx context.Context, c core.Caller, from From, query string, limit int) []json.RawMessage {
	r, mask := n.lists(c, from), n.mask(c)
	found := []json.RawMessage{}
	add := func(t Listed) {
		if len(found) < limit && isForModels(t.Raw) && (from.Uses == nil || from.Uses(t.Name)) {
			found = append(found, withNeeds(t, n.needsOf(ctx, c, from, r.byName[t.Name])))
		}
	}
	if len(query) == 0 {
		for _, t := range n.list(r, mask, false) {
			add(t)
		}
		return found
	}
	for _, at := range r.search().Search(query) {
		if own := at - len(r.tools); own < 0 {
			add(r.tools[at])
		} else if mask>>own&1 == 1 && !n.system[own].isSurface() {
			add(n.ownListed(own, n.own[own], mask))
		}
	}
	return found
}

// isForModels reports whether models may use a tool, rather than only its app's view (MCP Apps).
func isForModels(raw json.RawMessage) bool {
	var tool struct {
		Meta struct {
			UI struct {
				Visibility []string `json:"visibility"`
			} `json:"ui"`
			Flat []string `json:"ui/visibility"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(raw, &tool) // ignore members with an unexpected type
	seen := slices.Concat(tool.Meta.UI.Visibility, tool.Meta.Flat)
	return len(seen) == 0 || slices.Contains(seen, "model")
}

// needsOf returns the needs of calls to a tool of an app (see metaNeeds).
func (n *Namespace) needsOf(ctx context.Context, c core.Caller, from From, t *callable) (needs []string) {
	if t == nil {
		return nil
	}
	if t.approval {
		needs = append(needs, "approval")
	}
	if n.o.Accounts == nil {
		return needs
	}
	_, err := n.o.Accounts.Choose(ctx, c, t.Server, core.AccountWanted{ReadOnly: t.ReadOnly, Tool: t.Name, Chosen: from.Session.chosen()})
	if _, several := detailsOf[core.SeveralAccounts](err); several || core.CodeOf(err) == core.CodeLoginNeeded {
		needs = append(needs, "account")
	}
	return needs
}

// withNeeds returns the definition of a tool with the needs of its calls.
func withNeeds(t Listed, needs []string) json.RawMessage {
	if len(needs) == 0 {
		return t.Raw
	}
	value, err := json.Marshal(needs)
	if err != nil {
		return t.Raw
	}
	with, err := withMeta(t.Raw, rawjson.Member{Name: metaNeeds, Value: value})
	if err != nil {
		return t.Raw
	}
	return with
}

func newIndex(list []Listed) *ranking.Index {
	documents := make([]ranking.Document, len(list))
	for i, t := range list {
		var text struct {
			Title       string `json:"title"`
			Description string `json:"description"`
		}
		_ = json.Unmarshal(t.Raw, &text) // a member with an unexpected type is not searched
		documents[i] = ranking.Document{App: t.Tool.Server, Name: t.BareName(), Title: text.Title, Description: text.Description, Arguments: argumentsOf(t.Tool.Schema)}
	}
	return ranking.New(documents)
}

// argumentsOf returns the names and descriptions of the arguments in an input schema, sorted by name.
func argumentsOf(schema json.RawMessage) (texts []string) {
	var in struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &in) // nothing is searched in an unexpected schema
	for _, name := range slices.Sorted(maps.Keys(in.Properties)) {
		var text struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(in.Properties[name], &text)
		texts = append(texts, name, text.Description)
	}
	return texts
}
