package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/server"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry/directory"
	"github.com/ropewalk/ropewalk/plugins/registry/mcpregistry"
	"github.com/ropewalk/ropewalk/plugins/registry/mpak"
)

// checkRegistry requests the address of a registry, if it has one, and searches it if its adapter is built in.
// Any response from the address is fine, because how a registry responds depends on its adapter.
func (e *examination) checkRegistry(ctx context.Context, r config.Plugin) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	var s struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(r.Settings.JSON(), &s) != nil {
		return // its adapter has reported this
	}
	if r.Adapter == "directory" && r.Path == "" {
		e.checkFolder(ctx, r)
		return
	}
	if s.URL == "" {
		s.URL = map[string]string{"mcp-registry": mcpregistry.PublicURL, "mpak": mpak.PublicURL}[r.Adapter]
	}
	if s.URL == "" {
		return
	}
	res, err := get(ctx, s.URL)
	if err != nil {
		e.add("registry", failed, r.Name+": "+s.URL+": "+reason(err), "check the registry's url, DNS and the firewall; the server uses no proxy for registries")
		return
	}
	_ = res.Body.Close()
	if err := e.search(ctx, r); err != nil {
		e.add("registry", failed, r.Name+": "+s.URL+" responds, but cannot be searched: "+err.Error(), "check that url is the address of a registry that the "+r.Adapter+" adapter supports (docs/adapters.md)")
		return
	}
	e.add("registry", ok, r.Name+": "+s.URL+" responds", "")
}

// checkFolder reports the files that a registry skips in its directory. Its adapter reports a missing
// directory.
func (e *examination) checkFolder(ctx context.Context, r config.Plugin) {
	folder := directory.New()
	if folder.Configure(ctx, plugins.Config{JSON: r.Settings.JSON()}) != nil {
		return
	}
	bundles, bad, err := folder.Files(ctx)
	if err != nil {
		e.add("registry", failed, r.Name+": "+err.Error(), "make the folder readable by the server's user")
		return
	}
	for _, file := range slices.Sorted(maps.Keys(bad)) {
		e.add("registry", warning, fmt.Sprintf("%s: %s is skipped: %s", r.Name, file, bad[file]), "build the bundle again, or remove the file")
	}
	e.add("registry", ok, fmt.Sprintf("%s: a folder with %s", r.Name, cli.Count(bundles, "bundle")), "")
}

// search searches a registry once, as the server would.
func (e *examination) search(ctx context.Context, r config.Plugin) error {
	if _, builtin := e.o.Builtins[plugins.KindRegistry][r.Adapter]; !builtin || r.Path != "" {
		return nil
	}
	return server.SearchRegistry(ctx, e.config, e.o.Builtins, r)
}
