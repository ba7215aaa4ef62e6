package server

import (
	"slices"

	"github.com/ropewalk/ropewalk/core/config"
)

// scopes returns the OAuth scopes that clients of /mcp are asked to request: those that the adapter needs
// to know who is calling, and those of auth.scopes.
func scopes(c *config.Config) []string {
	var all []string
	if c.Auth.Adapter == "oidc" {
		all = append(all, "openid", "profile", "email")
	}
	for _, scope := range c.Auth.Scopes {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}
