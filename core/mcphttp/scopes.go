package mcphttp

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// identityScopes are about who the user is: a token need not carry them.
func identityScopes() []string { return []string{"openid", "profile", "email", "offline_access"} }

// missingScopes are the scopes that the configuration requires and a token was not granted, separated by
// spaces. A token that names no scopes, and an API key, is not held to them.
func (e *Endpoint) missingScopes(id core.Identity) string {
	if id.Granted == "" || len(e.o.Scopes) == 0 {
		return ""
	}
	granted := strings.Fields(id.Granted)
	var missing []string
	for _, scope := range e.o.Scopes {
		if !slices.Contains(granted, scope) && !slices.Contains(identityScopes(), scope) {
			missing = append(missing, scope)
		}
	}
	return strings.Join(missing, " ")
}

// insufficientScope asks for a token with more scopes (RFC 6750 part 3.1).
func (e *Endpoint) insufficientScope(c *fiber.Ctx, missing string) error {
	c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="insufficient_scope", error_description="The token lacks a scope", scope="`+
		strings.Join(e.o.Scopes, " ")+`", resource_metadata="`+e.metadataURL(c)+`"`)
	return (&fault{
		status: fiber.StatusForbidden, code: codeServer, message: "the token lacks the scope " + missing, data: map[string]any{"error": core.CodeForbidden},
	}).send(c)
}
