package access

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Describe combines the descriptions of the auth adapters for the RFC 9728 document: the issuer of the first adapter,
// and the authorization servers and scopes of all. The error is core.CodeNotFound if there is no adapter, and
// core.CodeUnavailable if one fails.
func (a *Access) Describe(ctx context.Context) (auth.Description, error) {
	g := a.gate.Load()
	if len(g.providers) == 0 {
		return auth.Description{}, noProvider()
	}
	var all auth.Description
	for i, p := range g.providers {
		about, err := p.describe(ctx)
		if err != nil {
			return auth.Description{}, err
		}
		if i == 0 {
			all = about
			all.AuthorizationServers, all.Scopes = slices.Clone(about.AuthorizationServers), slices.Clone(about.Scopes)
			continue
		}
		all.AuthorizationServers = union(all.AuthorizationServers, about.AuthorizationServers)
		all.Scopes = union(all.Scopes, about.Scopes)
		all.Login = all.Login || about.Login
	}
	return all, nil
}

// Reach asks all identity providers for their metadata concurrently. The result maps the name of each provider to the
// error, or to nil if the provider can be reached or has no metadata.
func (a *Access) Reach(ctx context.Context) map[string]error {
	g := a.gate.Load()
	failed := make([]error, len(g.providers))
	var all sync.WaitGroup
	for i, p := range g.providers {
		all.Go(func() {
			_, err := p.Adapter.Metadata(ctx)
			if !errors.Is(err, plugins.ErrNotFound) && !errors.Is(err, plugins.ErrUnimplemented) {
				failed[i] = err
			}
		})
	}
	all.Wait()
	state := make(map[string]error, len(failed))
	for i, p := range g.providers {
		state[p.Name] = failed[i]
	}
	return state
}

// union appends the strings of more that are not in all yet.
func union(all, more []string) []string {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// Metadata returns the RFC 8414 document of the first identity provider that has one, unchanged and not cached. The
// error is core.CodeNotFound if there is no such provider, and core.CodeUnavailable if its adapter fails.
func (a *Access) Metadata(ctx context.Context) (json.RawMessage, error) {
	for _, p := range a.gate.Load().providers {
		doc, err := p.Adapter.Metadata(ctx)
		switch {
		case errors.Is(err, plugins.ErrNotFound):
			continue
		case err != nil:
			return nil, unavailable(err)
		}
		return doc, nil
	}
	return nil, noProvider()
}

func noProvider() error {
	return core.Errorf(core.CodeNotFound, "no identity provider is configured")
}
