package oidc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth/internal/relyingparty"
)

// Settings are the adapter's settings.
type Settings struct {
	// Issuer is the provider's issuer URL, exactly as in its documents and tokens.
	Issuer string `json:"issuer"`
	// IDPDomain is a shortcut for Issuer: it is a host, and the issuer is https://<idpDomain>.
	IDPDomain string `json:"idpDomain"`
	// JWKSURI is the URL of the key set, for a provider whose metadata does not contain it.
	JWKSURI string `json:"jwksUri"`
	// AllowPrivateNetwork allows a provider with an address from RFC 1918 or RFC 4193.
	AllowPrivateNetwork bool `json:"allowPrivateNetwork"`

	// ClientID enables browser login, and is also an audience.
	ClientID string `json:"clientId"`
	// ClientSecret is empty for a public client.
	ClientSecret plugins.Secret `json:"clientSecret"`
	// RedirectURI is {base_url}/v1/auth/callback; the server's own value takes precedence.
	RedirectURI string `json:"redirectUri"`
	// Scopes are requested at login. They must include "openid".
	Scopes []string `json:"scopes"`
	// Audiences are accepted in addition to the server's own and the client id.
	Audiences []string `json:"audiences"`

	// Introspect asks the provider about each verified token (RFC 7662). A token that was revoked, or whose account was
	// closed, is then rejected before it expires. The server caches the result for up to a minute.
	Introspect bool `json:"introspect"`

	// Algorithms are the accepted signature algorithms: RS256, ES256, EdDSA. The default is RS256 only.
	Algorithms []string `json:"algorithms"`

	// OrganizationID admits only members of that organization.
	OrganizationID string `json:"organizationId"`
	// OrganizationClaim is the claim with the organization, or a list of them; a dotted path is allowed.
	OrganizationClaim string `json:"organizationClaim"`
	// RoleClaim is the claim with the role, or a list of them; a dotted path is allowed. Without it everyone is a
	// member.
	RoleClaim string `json:"roleClaim"`
	// Roles maps the provider's roles to owner, admin or member. Without it, the provider's roles must have these
	// names.
	Roles map[string]string `json:"roles"`
	// GroupsClaim is the claim with the groups; the default is "groups".
	GroupsClaim string `json:"groupsClaim"`
	// AssumeEmailVerified treats an email address as verified if the provider does not say whether it is
	// (email_verified).
	AssumeEmailVerified bool `json:"assumeEmailVerified"`
}

func defaults() Settings {
	return Settings{Scopes: []string{"openid", "profile", "email"}, OrganizationClaim: "org_id", GroupsClaim: "groups", Algorithms: []string{"RS256"}}
}

// Check enforces the rules that types do not express.
func (s *Settings) Check(problems *plugins.ConfigError) {
	switch {
	case s.Issuer != "" && s.IDPDomain != "":
		problems.Add("idpDomain", "means the same as issuer: leave one of them out")
	case s.Issuer == "" && s.IDPDomain == "":
		problems.Add("issuer", "must be set to the provider's issuer URL, such as https://id.example.com")
	case strings.Contains(s.Issuer, "/.well-known/"):
		problems.Add("issuer", "must be the issuer itself, without /.well-known/ and what follows it")
	case s.IDPDomain != "" && (strings.ContainsAny(s.IDPDomain, "/:?#@ ") || relyingparty.CheckURL(s.issuer()) != nil):
		problems.Add("idpDomain", "must be a host such as id.example.com")
	}
	for path, address := range map[string]string{"issuer": s.Issuer, "jwksUri": s.JWKSURI, "redirectUri": s.RedirectURI} {
		if err := relyingparty.CheckURL(address); address != "" && err != nil {
			problems.Add(path, "%v", err)
		}
	}
	if s.JWKSURI != "" && relyingparty.OnLoopback(s.JWKSURI) && !relyingparty.OnLoopback(s.issuer()) {
		problems.Add("jwksUri", "may be on loopback only if the issuer is")
	}
	if s.RedirectURI != "" && s.ClientID == "" {
		problems.Add("clientId", "must be set if redirectUri is")
	}
	if s.ClientSecret != "" && s.ClientID == "" {
		problems.Add("clientId", "must be set if clientSecret is")
	}
	if s.Introspect && (s.ClientID == "" || s.ClientSecret == "") {
		problems.Add("introspect", "needs clientId and clientSecret to authenticate with the provider")
	}
	if !slices.Contains(s.Scopes, "openid") {
		problems.Add("scopes", `must contain "openid", or the provider does not issue an id token`)
	}
	if s.OrganizationID != "" && s.OrganizationClaim == "" {
		problems.Add("organizationClaim", "must name the claim that contains the organization")
	}
	if s.Roles != nil && s.RoleClaim == "" {
		problems.Add("roleClaim", "must name the claim that roles maps")
	}
	if len(s.Algorithms) == 0 {
		problems.Add("algorithms", "must name at least one; leave it out for RS256")
	}
	for i, name := range s.Algorithms {
		if !slices.Contains([]string{"RS256", "ES256", "EdDSA"}, name) {
			problems.Add(fmt.Sprintf("algorithms[%d]", i), "must be RS256, ES256 or EdDSA")
		}
	}
	for name, rank := range s.Roles {
		if !relyingparty.KnownRole(rank) {
			problems.Add("roles."+name, "must be owner, admin or member")
		}
	}
}

func (s *Settings) issuer() string {
	if s.Issuer != "" {
		return s.Issuer
	}
	return "https://" + s.IDPDomain
}
