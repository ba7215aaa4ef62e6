package doctor

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

// checkRegistries requests the address of every registry that has one. Any answer is right: what a registry
// answers to is its adapter's matter.
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
		e.add("registry", ok, r.Name+": "+s.URL+" answers", "")
	}
}
