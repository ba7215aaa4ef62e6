package relyingparty

import (
	"encoding/json"
	"slices"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

// ranks returns the organization roles, highest first.
func ranks() []string { return []string{"owner", "admin", "member"} }

// KnownRole reports whether the server knows a role.
func KnownRole(role string) bool { return slices.Contains(ranks(), role) }

// Rank returns the highest role that the server knows, or "".
func Rank(roles []string) string {
	for _, rank := range ranks() {
		if slices.Contains(roles, rank) {
			return rank
		}
	}
	return ""
}

// identity returns the person that valid claims are about. It rejects members of another organization.
func (p *Party) identity(claims Claims) (auth.Identity, error) {
	organizations := claims.List(p.options.OrganizationClaim)
	organization := ""
	if len(organizations) == 1 {
		organization = organizations[0]
	}
	if wanted := p.options.Organization; wanted != "" {
		if !slices.Contains(organizations, wanted) {
			return auth.Identity{}, refuse("the token belongs to another organization (%s)", p.options.OrganizationClaim)
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

// email returns the address if the provider has verified it: someone who can enter any address must not be mistaken for
// its owner. Some providers send email_verified as a string.
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

// role returns the highest rank among the provider's roles, or "" if none is known.
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
