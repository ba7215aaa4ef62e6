package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Provider is an auth adapter with its configuration.
type Provider struct {
	Name        string // unique among the providers
	Adapter     auth.Adapter
	Audiences   []string // accepted in its tokens, in addition to the server's
	AnyAudience bool     // accept every audience in its tokens
	RedirectURI string   // where it sends browsers back to; "" uses the server's default
	SameAs      []string // issuers that know the same people: users with the same verified email are linked
	Enrollment  Enrollment

	// Recheck is how long a login is trusted before the provider is asked again; 0 means that it is never asked.
	Recheck time.Duration
}

// noAudience is passed when no audience is configured, because adapters treat an empty list as any audience.
const noAudience = "urn:ropewalk:no-audience-is-configured"

// requestVerifier is implemented by adapters that can check tokens against the requests that carry them.
type requestVerifier interface{ VerifiesRequests() bool }

// trusted is a Provider in a gate.
type trusted struct {
	Provider
	binds     bool     // the adapter checks tokens against their requests
	audiences []string // as passed to the adapter; empty means any
	rules     *enrollment
	about     atomic.Pointer[auth.Description]
}

func newTrusted(p Provider, common []string, enroller Enroller) *trusted {
	t := &trusted{Provider: p, rules: &enrollment{rules: p.Enrollment, store: enroller, done: make(map[string]struct{})}}
	if adapter, ok := p.Adapter.(requestVerifier); ok {
		t.binds = adapter.VerifiesRequests()
	}
	if !p.AnyAudience {
		if t.audiences = slices.Concat(common, p.Audiences); len(t.audiences) == 0 {
			t.audiences = []string{noAudience}
		}
	}
	return t
}

// audiencesOf returns the audiences that are accepted for a resource under /mcp: the server's, and the resource's own
// URLs. "" means /mcp itself.
func (t *trusted) audiencesOf(resource string) []string {
	if resource == "" || t.anyAudience() {
		return t.audiences
	}
	all := slices.Clone(t.audiences)
	for _, audience := range t.audiences {
		if strings.HasSuffix(audience, "/mcp") {
			all = append(all, audience+"/"+resource)
		}
	}
	return all
}

func (t *trusted) anyAudience() bool { return len(t.audiences) == 0 }

// describe returns the adapter's description and caches it.
func (t *trusted) describe(ctx context.Context) (auth.Description, error) {
	if known := t.about.Load(); known != nil {
		return *known, nil
	}
	about, err := t.Adapter.Describe(ctx)
	if err != nil {
		return auth.Description{}, unavailable(err)
	}
	t.about.Store(&about)
	return about, nil
}

// ofIssuer returns the provider for an issuer, or nil if there is none. The error is core.CodeUnavailable if this
// cannot be determined.
func (g *gate) ofIssuer(ctx context.Context, issuer string) (*trusted, error) {
	var failed error
	for _, p := range g.providers {
		about, err := p.describe(ctx)
		switch {
		case err != nil:
			failed = err
		case about.Issuer == issuer:
			return p, nil
		}
	}
	return nil, failed
}

// isForgotten reports whether no configured provider has one of these issuers. The result is false while a provider
// cannot describe itself.
func (g *gate) isForgotten(ctx context.Context, issuers []string) bool {
	return !slices.ContainsFunc(issuers, func(issuer string) bool {
		if issuer == core.IssuerLocal {
			return true
		}
		p, err := g.ofIssuer(ctx, issuer)
		return p != nil || err != nil
	})
}

// Forgotten reports whether none of the issuers belongs to a configured identity provider. A person whom only these
// issuers know cannot log in, and the person's API keys are refused.
func (a *Access) Forgotten(ctx context.Context, issuers []string) bool {
	g := a.gate.Load()
	return !g.dev && g.isForgotten(ctx, issuers)
}

// candidates returns the providers to try for a token, in order: the provider for the token's issuer if it names one,
// or else all providers.
func (g *gate) candidates(ctx context.Context, token string) []*trusted {
	if len(g.providers) < 2 {
		return g.providers
	}
	issuer := issuerOf(token)
	if issuer == "" {
		return g.providers
	}
	p, err := g.ofIssuer(ctx, issuer)
	if p == nil || err != nil {
		return g.providers
	}
	return []*trusted{p}
}

// issuerOf returns the unverified issuer in a JWT; "" if there is none.
func issuerOf(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, signed := strings.Cut(rest, ".")
	if !signed {
		return ""
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// has reports whether the gate still has a provider of an earlier gate.
func (g *gate) has(p *trusted) bool {
	return slices.ContainsFunc(g.providers, func(one *trusted) bool { return one.Adapter == p.Adapter })
}
