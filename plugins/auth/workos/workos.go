package workos

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/internal/relyingparty"
)

// Adapter trusts one AuthKit. It is ready for calls once it is configured.
type Adapter struct {
	*relyingparty.Party // verifies tokens and logs people in; nil until Configure

	log      hclog.Logger
	settings Settings
	members  *members // nil if memberships cannot or need not be checked
}

// New returns an Adapter that must be configured before use.
func New() *Adapter { return &Adapter{log: hclog.NewNullLogger()} }

// Name returns "workos", the adapter's name in the auth.adapter setting.
func (*Adapter) Name() string { return "workos" }

// UseLogger sets the adapter's logger.
func (a *Adapter) UseLogger(log hclog.Logger) { a.log = log }

// Validate checks settings without applying them.
func (*Adapter) Validate(_ context.Context, c plugins.Config) error {
	settings := defaults()
	return c.Decode(&settings)
}

// Configure applies the settings. It does not contact WorkOS.
func (a *Adapter) Configure(_ context.Context, c plugins.Config) error {
	settings := defaults()
	if err := c.Decode(&settings); err != nil {
		return err
	}
	a.settings = settings
	options := relyingparty.Options{
		Issuer: settings.issuer(), Keys: strings.TrimSuffix(settings.issuer(), "/") + "/oauth2/jwks",
		ClientID: settings.ClientID, ClientSecret: settings.ClientSecret.Reveal(),
		RedirectURI: settings.RedirectURI, Scopes: []string{"openid", "profile", "email"},
		Organization: settings.OrganizationID, OrganizationClaim: "org_id", Log: a.log,
	}
	switch {
	case settings.OrganizationID == "":
		// Roles count only in a configured organization: the role in a token applies to the token's own organization.
	case settings.APIKey == "":
		options.RoleClaim = "role"
		a.log.Warn("No WorkOS API key is set: membership and role are taken from the token. Set WORKOS_API_KEY to look them up at WorkOS.")
	default:
		a.members = newMembers(settings.APIURL, settings.APIKey, settings.OrganizationID, a.log)
	}
	a.Party = relyingparty.New(options)
	return nil
}

// Close cancels pending requests.
func (a *Adapter) Close() error {
	if a.Party != nil {
		a.Party.Close()
	}
	if a.members != nil {
		a.members.close()
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
	}, nil
}

// Verify implements auth.Adapter.
func (a *Adapter) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	id, err := a.Party.Verify(ctx, req)
	if err != nil {
		return auth.Identity{}, err
	}
	return a.withMembership(ctx, id)
}

// Exchange implements auth.Login.
func (a *Adapter) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	id, err := a.Party.Exchange(ctx, req)
	if err != nil {
		return auth.Identity{}, err
	}
	return a.withMembership(ctx, id)
}

// CheckSession implements auth.Sessions. Someone who is no longer a member is no longer logged in. The membership is
// checked first: a refresh token can be used only once, and must not be used up if the result is
// plugins.ErrUnavailable.
func (a *Adapter) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	member, err := a.withMembership(ctx, auth.Identity{Subject: req.Subject})
	if err != nil {
		return auth.Identity{}, err
	}
	id, err := a.Party.CheckSession(ctx, req)
	if err != nil {
		return auth.Identity{}, err
	}
	if a.members != nil {
		id.OrgRole = member.OrgRole
	}
	return id, nil
}

func (a *Adapter) withMembership(ctx context.Context, id auth.Identity) (auth.Identity, error) {
	if a.members == nil {
		return id, nil
	}
	role, err := a.members.role(ctx, id.Subject)
	if err != nil {
		return auth.Identity{}, err
	}
	id.OrgRole = role
	return id, nil
}
