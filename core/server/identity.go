package server

import (
	"net"
	"slices"
	"strconv"

	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// providersOf returns the providers for package access, from a configuration and its running auth adapters.
func providersOf(c *config.Config, running []pluginhost.Member[*pluginhost.Auth]) []access.Provider {
	all := make([]access.Provider, len(c.Auth))
	for i, a := range c.Auth {
		audiences := a.Audiences
		if a.ClientID != "" {
			audiences = append(slices.Clone(audiences), a.ClientID)
		}
		all[i] = access.Provider{
			Name: a.Name, Adapter: running[i].Handle, Audiences: audiences, AnyAudience: a.AnyAudience,
			RedirectURI: a.RedirectURI, SameAs: a.SameAs, Enrollment: enrollment(c, a), Recheck: a.Recheck,
		}
	}
	return all
}

// enrollment returns the rules from admins and join in an auth section. The first user becomes an admin only if nobody
// else can be an admin: no section names admins, and there is no SERVICE_API_KEY.
func enrollment(c *config.Config, a config.Auth) access.Enrollment {
	named := slices.ContainsFunc(c.Auth, func(one config.Auth) bool { return len(one.Admins) > 0 })
	e := access.Enrollment{Admins: a.Admins, FirstAdmin: c.APIKey == "" && !named}
	for _, j := range a.Join {
		if j.Group == "" {
			e.Workspace, e.Role = j.Workspace, j.Role
		} else {
			e.Groups = append(e.Groups, access.GroupRole{Group: j.Group, Workspace: j.Workspace, Role: j.Role})
		}
	}
	return e
}

// advertisedScopes returns the OAuth scopes that clients of /mcp are asked to request: auth.scopes, or else those that
// the adapter needs to identify the caller. A provider rejects clients that request a scope that it does not support.
func advertisedScopes(c *config.Config) []string {
	var all []string
	for _, a := range c.Auth {
		wanted := a.Scopes
		if a.Adapter == "oidc" && len(wanted) == 0 {
			wanted = []string{"openid", "profile", "email"}
		}
		for _, scope := range wanted {
			if !slices.Contains(all, scope) {
				all = append(all, scope)
			}
		}
	}
	return all
}

// audiences returns the audiences that are accepted in the tokens of every provider: the server's base URL
// with and without a trailing slash, and the URL of /mcp. If no base URL is configured, every address of the
// server is treated as a base URL.
func audiences(c *config.Config, addr *net.TCPAddr) []string {
	bases := []string{c.HTTP.BaseURL}
	if c.HTTP.BaseURL == "" {
		bases = bases[:0]
		for _, host := range append(loopbackNames(addr), c.HTTP.AllowedHosts...) {
			bases = append(bases, "http://"+host, "https://"+host)
		}
	}
	var all []string
	for _, base := range bases {
		all = append(all, base, base+"/", base+"/mcp")
	}
	return all
}

func loopbackNames(addr *net.TCPAddr) []string {
	port := strconv.Itoa(addr.Port)
	names := []string{addr.String()}
	if addr.IP.IsLoopback() || addr.IP.IsUnspecified() {
		for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
			names = append(names, net.JoinHostPort(host, port))
		}
	}
	return names
}

// redirectURI returns where an identity provider redirects browsers if its section does not set a URI: a path under the
// base URL. "" means that it is derived from the request.
func redirectURI(c *config.Config) string {
	if c.HTTP.BaseURL == "" {
		return ""
	}
	return c.HTTP.BaseURL + "/v1/auth/callback"
}
