package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Subject is an adapter to check: how to get one, and what it is known to accept.
type Subject struct {
	// Open returns an adapter that is configured and serves, and a function that ends it. For an
	// adapter of OpenID providers it is configured for p, with Settings(p) or its own words for
	// them; for another one p is nil.
	Open func(ctx context.Context, p *Provider) (auth.Adapter, func(), error)

	// Keys make the subject one of OpenID providers; nil when it is of another kind.
	Keys *Keys

	// Samples are tokens for an adapter of another kind; nil when there are none to try.
	Samples *Samples

	// Revoking is how something is revoked at the subject; nil when the kit cannot have that done.
	Revoking *Revoking

	// Revokes reports whether the subject declares the capability "revocations".
	Revokes bool

	// Rechecks reports whether the subject declares the capability "sessions".
	Rechecks bool

	// Binds reports whether the subject declares the capability "verify.request".
	Binds bool

	// Heard returns all that the adapters of Open have logged and printed so far: of processes that have
	// ended everything. Nil when the kit cannot hear it.
	Heard func() string

	// Limits are what the settings of an adapter of OpenID providers leave no choice about.
	Limits Limits
}

// Limits are what settings leave no choice about: checks that need the choice are skipped.
type Limits struct {
	OneOrganization bool // they always name Organization
	NoOrganization  bool // they never name one: a token of any organization is accepted
	NoRoles         bool // they do not name the claim that holds the role
}

// The placeholders in settings, beside ${issuer}: the organization that alone is let in, or nothing,
// and the claim that holds the role, or nothing.
const (
	organizationPlaceholder = "${organization}"
	rolePlaceholder         = "${roleClaim}"
)

// LimitsOf are the limits of settings, as SettingsFor takes them.
func LimitsOf(text string) Limits {
	if strings.TrimSpace(text) == "" {
		return Limits{}
	}
	varies := strings.Contains(text, organizationPlaceholder)
	names := strings.Contains(text, Organization)
	return Limits{OneOrganization: names && !varies, NoOrganization: !names && !varies, NoRoles: !strings.Contains(text, rolePlaceholder)}
}

// Setup is how an adapter is to be configured.
type Setup int

// The ways to configure an adapter.
const (
	OneOrganization Setup = iota // tokens of Organization alone are good
	AnyOrganization              // tokens of every organization are good
	WithRoles                    // the same, and the claim RoleClaim holds the role
)

// RoleClaim is the claim of a Provider's tokens that holds the role.
const RoleClaim = "role"

// possible is nil when s can be configured in the way of setup.
func (s Subject) possible(setup Setup) error {
	switch {
	case s.Keys == nil:
		return nil
	case setup != OneOrganization && s.Limits.OneOrganization:
		return kit.Skip("the settings name one organization; write %s in them", organizationPlaceholder)
	case setup == WithRoles && s.Limits.NoRoles:
		return kit.Skip("the settings do not name the claim that holds the role; write %s in them", rolePlaceholder)
	}
	return nil
}

// Samples are tokens that an adapter was set up for.
type Samples struct {
	Good     string        // it must accept this one
	Identity auth.Identity // as whose
	Audience string        // which Good is for; "" when its tokens are good for any
	Bad      []Forgery     // and refuse these
	Revoking *Revoking     // a token that can be revoked; nil when there is none
}

// The names that Settings and every token of a Provider agree on.
const (
	Audience     = "https://ropewalk.example/mcp" // what good tokens are for
	Organization = "org_kit"
	ClientID     = "client_kit"
	RedirectURI  = "http://127.0.0.1:1/v1/auth/callback" // nobody listens there; the kit reads the redirect itself
)

// Settings are the settings of an adapter for p, in the names that the built-in adapter oidc has.
func Settings(p *Provider) string {
	all := map[string]any{"issuer": p.Issuer(), "clientId": ClientID, "redirectUri": RedirectURI, "organizationClaim": "org_id"}
	switch p.Setup {
	case OneOrganization:
		all["organizationId"] = Organization
	case WithRoles:
		all["roleClaim"] = RoleClaim
	case AnyOrganization:
	}
	settings, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("marshal strings: %v", err))
	}
	return string(settings)
}

// stage is a provider with an adapter that trusts it, for one check.
type stage struct {
	provider *Provider // nil when the subject is of another kind
	adapter  auth.Adapter
	samples  Samples
	limits   Limits
	heard    func() string // of the subject
	close    func()
}

func (s Subject) stage(ctx context.Context, setup Setup) (*stage, error) {
	if err := s.possible(setup); err != nil {
		return nil, err
	}
	st := &stage{close: func() {}, limits: s.Limits, heard: s.Heard}
	if s.Samples != nil {
		st.samples = *s.Samples
	}
	if s.Keys != nil {
		p, err := NewProvider(s.Keys)
		if err != nil {
			return nil, err
		}
		p.Setup = setup
		st.provider, st.close = p, p.Close
		st.samples = p.good()
	}
	if err := st.open(ctx, s); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// open replaces the adapter by a fresh one.
func (st *stage) open(ctx context.Context, s Subject) error {
	adapter, end, err := s.Open(ctx, st.provider)
	if wrong, ok := errors.AsType[*plugins.ConfigError](err); ok && st.provider != nil && st.provider.Setup == WithRoles &&
		slices.ContainsFunc(wrong.Problems, func(p plugins.Problem) bool { return p.Path == "roleClaim" }) {
		return kit.Skip("the adapter has no setting for the claim that holds the role")
	}
	if err != nil {
		return fmt.Errorf("open the adapter: %w", err)
	}
	before := st.close
	st.adapter, st.close = adapter, func() { end(); before() }
	return nil
}

// forgeries are the tokens of a clause that must be refused.
func (st *stage) forgeries(clause Clause) []Forgery {
	if st.provider != nil {
		return st.provider.Forgeries(clause)
	}
	var some []Forgery
	for _, f := range st.samples.Bad {
		if f.Clause == clause {
			some = append(some, f)
		}
	}
	return some
}

// verify checks a token for the audience of the samples.
func (st *stage) verify(ctx context.Context, token string) (auth.Identity, error) {
	var audiences []string
	if st.samples.Audience != "" {
		audiences = []string{"https://other.example", st.samples.Audience}
	}
	return st.adapter.Verify(ctx, auth.VerifyRequest{Token: token, Audiences: audiences})
}
