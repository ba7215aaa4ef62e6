package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// adapters are the running plugins. A reload replaces them one by one.
type adapters struct {
	auth  []namedAuth // in the order of the configuration
	store *pluginhost.SessionStore
	named atomic.Pointer[[]namedRegistry]
	sinks []namedSink // in the order of the configuration
}

type namedRegistry struct {
	name    string
	adapter string
	handle  *pluginhost.Registry
}

// openAdapters starts every configured plugin, all or nothing.
func openAdapters(ctx context.Context, h *pluginhost.Host, c *config.Config) (_ *adapters, err error) {
	a := &adapters{}
	a.named.Store(&[]namedRegistry{})
	defer func() {
		if err != nil {
			a.close(ctx)
		}
	}()
	if a.auth, err = openAuth(ctx, h, c, nil, nil); err != nil {
		return nil, err
	}
	if a.store, err = openStore(ctx, h, c, nil); err != nil {
		return nil, err
	}
	registries, err := openRegistries(ctx, h, c, nil)
	if err != nil {
		return nil, err
	}
	a.named.Store(&registries)
	a.sinks, err = openSinks(ctx, h, c, nil, nil)
	return a, err
}

// openStore starts the session store, in place of old when there is one.
func openStore(ctx context.Context, h *pluginhost.Host, c *config.Config, old *pluginhost.SessionStore) (*pluginhost.SessionStore, error) {
	var replaced []*pluginhost.SessionStore
	if old != nil {
		replaced = append(replaced, old)
	}
	handle, err := h.SessionStore(ctx, c.SessionStore, replaced...)
	return handle, located(c, c.SessionStore, err)
}

// openRegistries starts the registries, in place of old.
func openRegistries(ctx context.Context, h *pluginhost.Host, c *config.Config, old []namedRegistry) ([]namedRegistry, error) {
	var open []namedRegistry
	var replaced []*pluginhost.Registry
	for _, r := range old {
		replaced = append(replaced, r.handle)
	}
	for _, r := range c.Registries {
		handle, err := h.Registry(ctx, r, replaced...)
		if err != nil {
			closeRegistries(ctx, open)
			return nil, located(c, r.Plugin, err)
		}
		open = append(open, namedRegistry{r.Name, r.Adapter, handle})
	}
	return open, nil
}

func closeRegistries(ctx context.Context, open []namedRegistry) {
	for _, r := range open {
		r.handle.Close(ctx)
	}
}

// located gives the problems an adapter found in its settings their place in the configuration file.
func located(c *config.Config, p config.Plugin, err error) error {
	if err == nil {
		return nil
	}
	wrong, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok {
		return config.Problems{c.Problem(p.At, err.Error())}
	}
	var all config.Problems
	for _, problem := range wrong.Problems {
		path := p.At
		if problem.Path != "" {
			path += "." + problem.Path
		}
		problem.Path = ""
		all = append(all, c.Problem(path, problem.String()))
	}
	return all
}

// registries returns the bundle registries in the order of the configuration.
func (a *adapters) registries() []source.NamedRegistry {
	open := *a.named.Load()
	out := make([]source.NamedRegistry, len(open))
	for i, r := range open {
		out[i] = source.NamedRegistry{Name: r.name, Registry: r.handle}
	}
	return out
}

// Registries returns the configured registries in their order.
func (a *adapters) Registries() []core.Registry {
	open := *a.named.Load()
	all := make([]core.Registry, len(open))
	for i, r := range open {
		all[i] = core.Registry{Name: r.name, Adapter: r.adapter}
	}
	return all
}

// SearchBundles searches every registry, or the one that q names. The results take turns, so that a
// registry with many does not hide those of the next.
func (a *adapters) SearchBundles(ctx context.Context, q tools.BundleQuery) (found []tools.Found, failures []string, err error) {
	pages, failures := [][]tools.Found{}, []string{}
	known := false
	for _, r := range *a.named.Load() {
		if q.Registry != "" && q.Registry != r.name {
			continue
		}
		known = true
		page, err := r.handle.Search(ctx, registry.Query{Text: q.Text, Limit: q.Limit})
		if err != nil {
			failures = append(failures, fmt.Sprintf("registry %s: %v", r.name, err))
			continue
		}
		pages = append(pages, foundIn(r.name, page))
	}
	if q.Registry != "" && !known {
		return nil, nil, core.Errorf(core.CodeNotFound, "no registry is named %q", q.Registry)
	}
	return interleave(pages, q.Limit), failures, nil
}

func foundIn(name string, page registry.Page) []tools.Found {
	all := make([]tools.Found, len(page.Entries))
	for i, e := range page.Entries {
		all[i] = tools.Found{
			Registry: name, Name: e.Name, Title: e.Title, Description: e.Description, Version: e.Version, TrustScore: e.TrustScore,
		}
	}
	return all
}

// interleave takes one of each list in turn, up to limit.
func interleave(lists [][]tools.Found, limit int) []tools.Found {
	all := []tools.Found{}
	for i := 0; len(all) < limit; i++ {
		before := len(all)
		for _, list := range lists {
			if i < len(list) && len(all) < limit {
				all = append(all, list[i])
			}
		}
		if len(all) == before {
			break
		}
	}
	return all
}

func (a *adapters) close(ctx context.Context) {
	closeSinks(ctx, a.sinks)
	closeRegistries(ctx, *a.named.Load())
	if a.store != nil {
		a.store.Close(ctx)
	}
	closeAuth(ctx, a.auth)
}
