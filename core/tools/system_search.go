package tools

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// Found is a bundle that a registry search found.
type Found struct {
	Registry    string `json:"registry"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	Version     string `json:"version"`
	TrustScore  int    `json:"trustScore"`
}

// BundleQuery is a search for bundles.
type BundleQuery struct {
	Text     string
	Registry string // "" means all
	Limit    int
}

// Bundles searches the configured registries. failures contains a sentence for each registry that could not be
// searched. The error is core.CodeNotFound if the query specifies an unknown registry.
type Bundles interface {
	SearchBundles(ctx context.Context, q BundleQuery) (found []Found, failures []string, err error)
}

// FoundBundles is the result of a registry search.
type FoundBundles struct {
	Bundles  []Found  `json:"bundles"`
	Failures []string `json:"failures"`
}

// SearchBundles searches the configured registries, for system__search and the HTTP API.
func SearchBundles(ctx context.Context, bundles Bundles, q BundleQuery) (FoundBundles, error) {
	found, failures, err := bundles.SearchBundles(ctx, q)
	return FoundBundles{found, failures}, err
}

// searchLimit is how many results a search returns if the caller sets no limit.
const searchLimit = 10

// Search returns system__search. It searches tools while the toolDiscovery flag is on, and registries while
// bundleDiscovery is on.
func (n *Namespace) Search(bundles Bundles) System {
	return System{
		Name: "search", Title: "Search", ReadOnly: true,
		Description: "Searches the tools in this workspace (scope tools) or the bundles of the registries (scope registry). " +
			"Tools come with their input schema, ready to be called.",
		Schema:       searchSchema(true, true),
		ListedSchema: searchSchema,
		RunFrom: func(ctx context.Context, c core.Caller, from From, arguments json.RawMessage) (any, error) {
			in := struct {
				Query    string `json:"query"`
				Scope    string `json:"scope"`
				Registry string `json:"registry"`
				Limit    int    `json:"limit"`
			}{Scope: "tools", Limit: searchLimit}
			if err := Arguments(arguments, &in); err != nil {
				return nil, err
			}
			if in.Scope == "tools" {
				if !n.o.Features.Enabled(config.FlagToolDiscovery) {
					return nil, core.Errorf(core.CodeFeatureDisabled, "searching tools is off: the feature flag %s is false", config.FlagToolDiscovery)
				}
				return map[string]any{"tools": n.searchTools(ctx, c, from, in.Query, in.Limit)}, nil
			}
			if !n.o.Features.Enabled(config.FlagBundleDiscovery) {
				return nil, core.Errorf(core.CodeFeatureDisabled, "searching registries is off: the feature flag %s is false", config.FlagBundleDiscovery)
			}
			return SearchBundles(ctx, bundles, BundleQuery{Text: in.Query, Registry: in.Registry, Limit: in.Limit})
		},
	}
}

// searchSchema returns the schema of the arguments without the scopes whose flags are off.
func searchSchema(toolDiscovery, bundleDiscovery bool) json.RawMessage {
	members := `"query": {"type": "string", "description": "words to look for; empty lists everything"}, `
	switch {
	case toolDiscovery && bundleDiscovery:
		members += `"scope": {"type": "string", "enum": ["tools", "registry"], "default": "tools"}, `
	case toolDiscovery:
		members += `"scope": {"type": "string", "enum": ["tools"], "default": "tools"}, `
	case bundleDiscovery:
		members += `"scope": {"type": "string", "enum": ["registry"]}, `
	}
	required := `"query"`
	if bundleDiscovery {
		members += `"registry": {"type": "string", "description": "scope registry: only this one"}, `
		if !toolDiscovery {
			required += `, "scope"`
		}
	}
	members += `"limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}`
	return json.RawMessage(`{"type": "object", "properties": {` + members + `}, "required": [` + required + `], "additionalProperties": false}`)
}
