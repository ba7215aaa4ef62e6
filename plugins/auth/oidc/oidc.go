package oidc

import (
	"context"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/internal/relyingparty"
)

// Adapter trusts one OpenID provider. It is ready for calls once it is configured.
type Adapter struct {
	*relyingparty.Party // verifies tokens and logs people in; nil until Configure

	log      hclog.Logger
	settings Settings
}

// New returns an Adapter that must be configured before use.
func New() *Adapter { return &Adapter{log: hclog.NewNullLogger()} }

// Name returns "oidc", the adapter's name in the auth.adapter setting.
func (*Adapter) Name() string { return "oidc" }

// UseLogger sets the adapter's logger.
func (a *Adapter) UseLogger(log hclog.Logger) { a.log = log }

// Validate checks settings without applying them.
func (*Adapter) Validate(_ context.Context, c plugins.Config) error {
	settings := defaults()
	return c.Decode(&settings)
}

// Configure applies the settings. It does not contact the provider, so it succeeds even while the provider is
// unavailable. Until it recovers, Verify returns plugins.ErrUnavailable.
func (a *Adapter) Configure(_ context.Context, c plugins.Config) error {
	settings := defaults()
	if err := c.Decode(&settings); err != nil {
		return err
	}
	a.settings = settings
	a.Party = relyingparty.New(relyingparty.Options{
		Issuer: settings.issuer(), JWKSURI: settings.JWKSURI, Private: settings.AllowPrivateNetwork,
		ClientID: settings.ClientID, ClientSecret: settings.ClientSecret.Reveal(),
		RedirectURI: settings.RedirectURI, Scopes: settings.Scopes,
		Organization: settings.OrganizationID, OrganizationClaim: settings.OrganizationClaim,
		RoleClaim: settings.RoleClaim, Roles: settings.Roles, GroupsClaim: settings.GroupsClaim,
		AssumeEmailVerified: settings.AssumeEmailVerified,
		Algorithms:          settings.Algorithms, Introspect: settings.Introspect, Log: a.log,
	})
	return nil
}

// Close cancels pending requests.
func (a *Adapter) Close() error {
	if a.Party != nil {
		a.Party.Close()
	}
	return nil
}

// Describe implements auth.Adapter.
func (a *Adapter) Describe(context.Context) (auth.Description, error) {
	audiences := slices.Clone(a.settings.Audiences)
	if a.settings.ClientID != "" {
		audiences = append(audiences, a.settings.ClientID)
	}
	issuer := a.settings.issuer()
	return auth.Description{
		Issuer: issuer, AuthorizationServers: []string{issuer}, Audiences: audiences, Login: a.CanLogin(),
		Algorithms: slices.Clone(a.settings.Algorithms), Scopes: slices.Clone(a.settings.Scopes),
	}, nil
}
