package authtest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/plugins/auth"
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
}

// Samples are tokens that an adapter was set up for.
type Samples struct {
	Good     string        // it must accept this one
	Identity auth.Identity // as whose
	Audience string        // which Good is for; "" when its tokens are good for any
	Bad      []Forgery     // and refuse these
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
	settings, err := json.Marshal(map[string]any{
		"issuer": p.Issuer(), "clientId": ClientID, "redirectUri": RedirectURI,
		"organizationId": Organization, "organizationClaim": "org_id",
	})
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
	close    func()
}

func (s Subject) stage(ctx context.Context) (*stage, error) {
	st := &stage{close: func() {}}
	if s.Samples != nil {
		st.samples = *s.Samples
	}
	if s.Keys != nil {
		p, err := NewProvider(s.Keys)
		if err != nil {
			return nil, err
		}
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
