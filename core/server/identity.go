package server

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// namedAuth is a running auth adapter.
type namedAuth struct {
	config config.Auth
	handle *pluginhost.Auth
	issuer string // "" when it is the only one
}

// openAuth starts every configured auth adapter that is not among those that are kept, in place of old, all
// or nothing.
func openAuth(ctx context.Context, h *pluginhost.Host, c *config.Config, kept, old []namedAuth) (_ []namedAuth, err error) {
	var all, started []namedAuth
	var replaced []*pluginhost.Auth
	for _, a := range without(old, kept) {
		replaced = append(replaced, a.handle)
	}
	defer func() {
		if err != nil {
			closeAuth(ctx, started)
		}
	}()
	for _, a := range c.Auth {
		one := namedAuth{config: a}
		if i := slices.IndexFunc(kept, func(k namedAuth) bool { return sameAdapter(k.config, a) }); i >= 0 {
			one.handle, one.issuer = kept[i].handle, kept[i].issuer
		} else {
			if one.handle, err = h.Auth(ctx, a, replaced...); err != nil {
				return nil, located(c, a.Plugin, err)
			}
			started = append(started, one)
		}
		all = append(all, one)
	}
	return all, distinguish(ctx, c, all)
}

// distinguish records the issuer of each of several adapters, which chooses the adapter for a token, and
// returns an error when two have the same.
func distinguish(ctx context.Context, c *config.Config, all []namedAuth) error {
	if len(all) < 2 {
		return nil
	}
	for i := range all {
		about, err := all[i].handle.Describe(ctx)
		if err != nil {
			return located(c, all[i].config.Plugin, err)
		}
		all[i].issuer = about.Issuer
		for _, other := range all[:i] {
			if other.issuer == about.Issuer {
				return located(c, all[i].config.Plugin, fmt.Errorf("its issuer %q is that of %s already; each auth adapter needs an issuer of its own", about.Issuer, other.config.At))
			}
		}
	}
	return nil
}

// sameAdapter reports whether the process of one configured adapter serves for another.
func sameAdapter(a, b config.Auth) bool {
	a.At, b.At = "", ""
	return a.Name == b.Name && reflect.DeepEqual(a.Plugin, b.Plugin)
}

func closeAuth(ctx context.Context, all []namedAuth) {
	for _, a := range all {
		a.handle.Close(ctx)
	}
}

// providers is what access knows of the auth adapters.
func (a *adapters) providers(c *config.Config) []access.Provider {
	all := make([]access.Provider, len(a.auth))
	for i, one := range a.auth {
		audiences := one.config.Audiences
		if one.config.ClientID != "" {
			audiences = append(slices.Clone(audiences), one.config.ClientID)
		}
		all[i] = access.Provider{
			Name: one.config.Name, Adapter: one.handle, Audiences: audiences, AnyAudience: one.config.AnyAudience,
			RedirectURI: one.config.RedirectURI, Enrollment: enrollment(c, one.config), Recheck: one.config.Recheck,
		}
	}
	return all
}

// enrollment is what admins and join of an auth section say. The first user becomes an admin only where
// nobody else could be one: without admins in any section and without SERVICE_API_KEY.
func enrollment(c *config.Config, a config.Auth) access.Enrollment {
	named := slices.ContainsFunc(c.Auth, func(one config.Auth) bool { return len(one.Admins) > 0 })
	return access.Enrollment{Admins: a.Admins, FirstAdmin: c.APIKey == "" && !named, Workspace: a.Join.Workspace, Role: a.Join.Role}
}

// currentAuth returns the adapters that a configuration still has, whose file is the one that they were
// started from.
func (a *adapters) currentAuth(next *config.Config) ([]namedAuth, error) {
	var current []namedAuth
	for _, one := range a.auth {
		i := slices.IndexFunc(next.Auth, func(other config.Auth) bool { return sameAdapter(one.config, other) })
		if i < 0 {
			continue
		}
		outdated, err := one.handle.Outdated()
		if err != nil {
			return nil, located(next, next.Auth[i].Plugin, err)
		}
		if !outdated {
			current = append(current, one)
		}
	}
	return current, nil
}

// without returns the adapters of all whose process is none of those of some.
func without(all, some []namedAuth) []namedAuth {
	return slices.DeleteFunc(slices.Clone(all), func(one namedAuth) bool {
		return slices.ContainsFunc(some, func(other namedAuth) bool { return other.handle == one.handle })
	})
}

// replaceAuth puts the adapters of a reload to use, and returns those that nobody uses any more.
func (s *Server) replaceAuth(next *config.Config, x *replacement) (retired []namedAuth) {
	retired = without(s.adapters.auth, x.auth)
	for _, one := range x.startAuth {
		s.follow(one.handle)
	}
	s.adapters.auth = x.auth
	s.access.SetProviders(s.adapters.providers(next), audiences(next, s.addr()))
	for _, one := range retired {
		s.unfollow(one.handle)
	}
	return retired
}
