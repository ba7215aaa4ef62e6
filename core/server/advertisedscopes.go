package server

import (
	"slices"

	"github.com/ropewalk/ropewalk/core/config"
)

// advertisedScopes returns the OAuth scopes that clients of /mcp are asked to request: those that the adapter needs
// to know who is calling, and those of auth.scopes.
func advertisedScopes(c *config.Config) []string {
	var all []string
	for _, a := range c.Auth {
		wanted := a.Scopes
		if a.Adapter == "oidc" {
			wanted = append([]string{"openid", "profile", "email"}, wanted...)
		}
		for _, scope := range wanted {
			if !slices.Contains(all, scope) {
				all = append(all, scope)
			}
		}
	}
	return all
}
