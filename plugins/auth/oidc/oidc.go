package oidc

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/internal/relyingparty"
)

// Adapter trusts one OpenID provider. It is ready for calls once it is configured.
type Adapter struct {
	log      hclog.Logger
	settings Settings
	party    *relyingparty.Party
}

// New returns an Adapter that must be configured before use.
func New() *Adapter { return &Adapter{log: hclog.NewNullLogger()} }

// Name returns "oidc", the adapter's name in the setting auth.adapter.
func (*Adapter) Name() string { return "oidc" }

// UseLogger sets the adapter's logger.
func (a *Adapter) UseLogger(log hclog.Logger) { a.log = log }

// Validate checks settings without applying them.
func (*Adapter) Validate(_ context.Context, c plugins.Config) error {
	settings := defaults()
	return c.Decode(&settings)
}

// Configure applies the settings. It does not contact the provider, so it succeeds even while the provider is
// unavailable. Until it is back, Verify returns plugins.ErrUnavailable.
func (a *Adapter) Configure(_ context.Context, c plugins.Config) error {
	settings := defaults()
	if err := c.Decode(&settings); err != nil {
		return err
	}
	a.settings = settings
	a.party = relyingparty.New(relyingparty.Options{
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
	if a.party != nil {
		a.party.Close()
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
		Issuer: issuer, AuthorizationServers: []string{issuer}, Audiences: audiences, Login: a.party.CanLogin(),
		Algorithms: slices.Clone(a.settings.Algorithms), Scopes: slices.Clone(a.settings.Scopes),
	}, nil
}

// Verify implements auth.Adapter.
func (a *Adapter) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	return a.party.Verify(ctx, req)
}

// Metadata implements auth.Adapter.
func (a *Adapter) Metadata(ctx context.Context) (json.RawMessage, error) {
	return a.party.Metadata(ctx)
}

// AuthorizeURL implements auth.Login.
func (a *Adapter) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	return a.party.AuthorizeURL(ctx, req)
}

// CheckSession implements auth.Sessions.
func (a *Adapter) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	return a.party.CheckSession(ctx, req)
}

// VerifyLogout implements auth.Sessions.
func (a *Adapter) VerifyLogout(ctx context.Context, token string) (auth.Logout, error) {
	return a.party.VerifyLogout(ctx, token)
}

// Exchange implements auth.Login.
func (a *Adapter) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	return a.party.Exchange(ctx, req)
}
