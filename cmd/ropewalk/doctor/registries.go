package doctor

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/server"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

// searchTime bounds the search of one registry.
const searchTime = 15 * time.Second

// checkRegistries requests the address of every registry that has one, and searches it if its adapter is
// built in. Any answer of the address is right: what a registry answers to is its adapter's matter.
func (e *examination) checkRegistries(ctx context.Context) {
	for _, r := range e.config.Registries {
		var s struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(r.Settings.JSON(), &s) != nil {
			continue // its adapter has reported it
		}
		if s.URL == "" {
			s.URL = map[string]string{"mcp-registry": mcpregistry.PublicURL, "mpak": mpak.PublicURL}[r.Adapter]
		}
		if s.URL == "" {
			continue
		}
		res, err := get(ctx, s.URL)
		if err != nil {
			e.add("registry", failed, r.Name+": "+s.URL+": "+cause(err).Error(), "check the registry's url, DNS, the firewall and the proxy (HTTPS_PROXY)")
			continue
		}
		_ = res.Body.Close()
		if err := e.search(ctx, r); err != nil {
			e.add("registry", failed, r.Name+": "+s.URL+" answers, but cannot be searched: "+err.Error(), "check that url is the address of a registry that the adapter "+r.Adapter+" understands (docs/adapters.md)")
			continue
		}
		e.add("registry", ok, r.Name+": "+s.URL+" answers", "")
	}
}

// search searches a registry once, as the server would.
func (e *examination) search(ctx context.Context, r config.Registry) error {
	if _, builtin := e.o.Builtins[plugins.KindRegistry][r.Adapter]; !builtin || r.Path != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	return server.SearchRegistry(ctx, e.config, e.o.Builtins, r)
}
