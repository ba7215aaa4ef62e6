package relyingparty

import (
	"encoding/json"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// ranks are the organization roles, the highest first.
func ranks() []string { return []string{"owner", "admin", "member"} }

// KnownRole reports whether role is one that the server knows.
func KnownRole(role string) bool { return slices.Contains(ranks(), role) }

// Rank is the highest of roles that the server knows, "" when there is none.
func Rank(roles []string) string {
	for _, rank := range ranks() {
		if slices.Contains(roles, rank) {
			return rank
		}
	}
	return ""
}

// identity is who good claims are about; it refuses one of another organization.
func (p *Party) identity(claims Claims) (auth.Identity, error) {
	organizations := claims.List(p.options.OrganizationClaim)
	organization := ""
	if len(organizations) == 1 {
		organization = organizations[0]
	}
	if wanted := p.options.Organization; wanted != "" {
		if !slices.Contains(organizations, wanted) {
			return auth.Identity{}, refuse("the token is of another organization (%s)", p.options.OrganizationClaim)
		}
		organization = wanted
	}
	expires, _, err := claims.instant("exp")
	if err != nil {
		return auth.Identity{}, refuse("the token's exp %w", err)
	}
	id := auth.Identity{
		Issuer: claims.Text("iss"), Subject: claims.Text("sub"), Email: p.email(claims),
		OrganizationID: organization, OrgRole: p.role(claims), Scopes: claims.scopes(), ExpiresAt: expires,
	}
	id.SessionID = claims.Text("sid")
	if p.options.GroupsClaim != "" {
		id.Groups = claims.List(p.options.GroupsClaim)
	}
	if id.Claims, err = json.Marshal(claims); err != nil {
		return auth.Identity{}, refuse("the token's claims cannot be kept: %w", err)
	}
	for _, name := range []string{claims.Text("name"), claims.Text("preferred_username"), id.Email} {
		if id.DisplayName == "" {
			id.DisplayName = name
		}
	}
	return id, nil
}

// email is the address that the provider has verified: people who may type in any address must not be taken for its
// owner. Some providers write the claim as text.
func (p *Party) email(claims Claims) string {
	verified, stated := claims["email_verified"]
	switch string(verified) {
	case `true`, `"true"`:
		return claims.Text("email")
	}
	if !stated && p.options.AssumeEmailVerified {
		return claims.Text("email")
	}
	return ""
}

// role is the highest rank among the roles that the provider gave; "" when none of them is one.
func (p *Party) role(claims Claims) string {
	if p.options.RoleClaim == "" {
		return ""
	}
	var held []string
	for _, given := range claims.List(p.options.RoleClaim) {
		if p.options.Roles != nil {
			given = p.options.Roles[given]
		}
		held = append(held, given)
	}
	return Rank(held)
}
