package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// adapters contains the running plugins.
type adapters struct {
	auth     *pluginhost.Set[*pluginhost.Auth]
	store    *pluginhost.Set[*pluginhost.SessionStore] // always exactly one
	registry *pluginhost.Set[*pluginhost.Registry]
	sinks    *pluginhost.Set[*pluginhost.Audit]
}

func newAdapters(h *pluginhost.Host) *adapters {
	return &adapters{pluginhost.NewSet(h.Auth), pluginhost.NewSet(h.SessionStore), pluginhost.NewSet(h.Registry), pluginhost.NewSet(h.Audit)}
}

// exchange is the replacement of adapters that a configuration requires. All adapters that it needs are running.
type exchange struct {
	auth     *pluginhost.Exchange[*pluginhost.Auth]
	registry *pluginhost.Exchange[*pluginhost.Registry]
	sinks    *pluginhost.Exchange[*pluginhost.Audit]
	store    *pluginhost.Exchange[*pluginhost.SessionStore]

	sections []section // the exchanges above that have been prepared
}

// section contains the plugins from one section of the configuration.
type section struct {
	name string
	part interface {
		Changes() bool
		Apply()
		Drop(ctx context.Context)
		Retire(ctx context.Context)
	}
}

// prepare starts the adapters that a configuration needs in addition to the running ones, all or none. The session
// store comes last: if its backend allows only one writer, it takes over from the current store as soon as it starts.
func (a *adapters) prepare(ctx context.Context, c *config.Config) (_ *exchange, err error) {
	x := &exchange{}
	defer func() {
		if err != nil {
			x.drop(ctx)
		}
	}()
	if x.auth, err = a.auth.Prepare(ctx, c, authPlugins(c)); err != nil {
		return nil, err
	}
	x.sections = append(x.sections, section{"auth", x.auth})
	if err := distinguish(ctx, c, x.auth.Next); err != nil {
		return nil, err
	}
	if x.registry, err = a.registry.Prepare(ctx, c, c.Registries); err != nil {
		return nil, err
	}
	x.sections = append(x.sections, section{"registries", x.registry})
	if x.sinks, err = a.sinks.Prepare(ctx, c, c.Audit.Sinks); err != nil {
		return nil, err
	}
	x.sections = append(x.sections, section{"audit", x.sinks})
	if x.store, err = a.store.Prepare(ctx, c, []config.Plugin{c.SessionStore}); err != nil {
		return nil, err
	}
	x.sections = append(x.sections, section{"sessionStore", x.store})
	return x, nil
}

// apply puts the new adapters into use. The adapters that they replace are still running.
func (x *exchange) apply() {
	for _, s := range x.sections {
		s.part.Apply()
	}
}

func (x *exchange) drop(ctx context.Context) {
	for _, s := range x.sections {
		s.part.Drop(ctx)
	}
}

func (x *exchange) retire(ctx context.Context) {
	for _, s := range x.sections {
		s.part.Retire(ctx)
	}
}

func (a *adapters) close(ctx context.Context) {
	a.sinks.Close(ctx)
	a.registry.Close(ctx)
	a.store.Close(ctx)
	a.auth.Close(ctx)
}

func authPlugins(c *config.Config) []config.Plugin {
	all := make([]config.Plugin, len(c.Auth))
	for i, a := range c.Auth {
		all[i] = a.Plugin
	}
	return all
}

// distinguish returns an error if two auth adapters have the same issuer, because the issuer selects the adapter for a
// token.
func distinguish(ctx context.Context, c *config.Config, all []pluginhost.Member[*pluginhost.Auth]) error {
	if len(all) < 2 {
		return nil
	}
	first := map[string]string{} // configuration path by issuer
	for _, m := range all {
		about, err := m.Handle.Describe(ctx)
		if err != nil {
			return pluginhost.Located(c, m.Plugin, err)
		}
		if other, twice := first[about.Issuer]; twice {
			return pluginhost.Located(c, m.Plugin, fmt.Errorf("its issuer %q is already used by %s; each auth adapter needs its own issuer", about.Issuer, other))
		}
		first[about.Issuer] = m.At
	}
	return nil
}

// named returns the bundle registries in the order of the configuration.
func (a *adapters) named() []source.NamedRegistry {
	var all []source.NamedRegistry
	for _, m := range a.registry.Members() {
		all = append(all, source.NamedRegistry{Name: m.Name, Registry: m.Handle})
	}
	return all
}

// Registries returns the configured registries in the order of the configuration.
func (a *adapters) Registries() []core.Registry {
	var all []core.Registry
	for _, m := range a.registry.Members() {
		all = append(all, core.Registry{Name: m.Name, Adapter: m.Adapter})
	}
	return all
}

// SearchBundles searches every registry, or the one named in q. Results alternate between registries, so that
// a registry with many results does not hide those of the next.
func (a *adapters) SearchBundles(ctx context.Context, q tools.BundleQuery) (found []tools.Found, failures []string, err error) {
	open := slices.DeleteFunc(slices.Clone(a.registry.Members()), func(m pluginhost.Member[*pluginhost.Registry]) bool {
		return q.Registry != "" && q.Registry != m.Name
	})
	if q.Registry != "" && len(open) == 0 {
		return nil, nil, core.Errorf(core.CodeNotFound, "there is no registry %q", q.Registry)
	}
	pages, failures := [][]tools.Found{}, []string{}
	for _, m := range open {
		page, err := m.Handle.Search(ctx, registry.Query{Text: q.Text, Limit: q.Limit})
		if err != nil {
			failures = append(failures, fmt.Sprintf("registry %s: %v", m.Name, err))
			continue
		}
		var one []tools.Found
		for _, e := range page.Entries {
			one = append(one, tools.Found{
				Registry: m.Name, Name: e.Name, Title: e.Title, Description: e.Description, Version: e.Version, TrustScore: e.TrustScore,
			})
		}
		pages = append(pages, one)
	}
	return interleave(pages, q.Limit), failures, nil
}

// interleave takes one result from each list in turn, up to limit.
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
