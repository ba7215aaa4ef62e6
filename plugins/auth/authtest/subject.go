package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Subject is the adapter under test: how to get one, and what it is known to accept.
type Subject struct {
	// Open returns an adapter that is configured and serves, and a function that ends it. For an adapter of OpenID
	// providers it is configured for p, with Settings(p) or its own words for them; for another one p is nil.
	Open func(ctx context.Context, p *Provider) (auth.Adapter, func(), error)

	Keys    *Keys    // make the subject one of OpenID providers; nil when it is of another kind
	Samples *Samples // tokens for an adapter of another kind; nil when there are none to try
	Limits  Limits   // what the settings leave no choice about

	// The capabilities that the subject declares.
	Logins, Revokes, Rechecks, Binds bool

	// Heard returns all that the adapters of Open have logged and printed so far: of processes that have ended
	// everything. Nil when the kit cannot hear it.
	Heard func() string
}

// Limits are what settings leave no choice about: what needs the choice is not tried.
type Limits struct {
	OneOrganization bool // they always name the provider's Organization
	NoOrganization  bool // they never name one: a token of any organization is accepted
	NoRoles         bool // they do not name the claim that holds the role
	NoClient        bool // they do not name the provider's ClientID, which logins need
	NoIntrospection bool // they cannot have the provider asked about each token
}

// placeholders are what settings may have in place of the names of a provider.
func placeholders(p *Provider) map[string]string {
	all := map[string]string{
		"${issuer}": p.Issuer(), "${clientId}": p.ClientID, "${clientSecret}": p.ClientSecret, "${audience}": p.Audience, "${redirectUri}": RedirectURI,
		"${organization}": "", "${roleClaim}": "", `"${introspect}"`: "false",
	}
	switch p.Setup {
	case OneOrganization:
		all["${organization}"] = p.Organization
	case WithRoles:
		all["${roleClaim}"] = RoleClaim
	case Introspecting:
		all[`"${introspect}"`] = "true"
	case AnyOrganization:
	}
	return all
}

// SettingsFor are the settings that text describes, for p: "${issuer}" in it stands for the issuer of p, and so on. No
// text at all stands for Settings(p). It reports whether the settings are about p, and with that whether the adapter is
// one of OpenID providers.
func SettingsFor(text string, p *Provider) (settings string, aboutProvider bool) {
	if strings.TrimSpace(text) == "" {
		return Settings(p), true
	}
	var pairs []string
	for name, value := range placeholders(p) {
		pairs = append(pairs, name, value)
	}
	return strings.NewReplacer(pairs...).Replace(text), strings.Contains(text, "${issuer}")
}

// LimitsOf are the limits of settings, as SettingsFor takes them.
func LimitsOf(text string) Limits {
	if strings.TrimSpace(text) == "" {
		return Limits{}
	}
	has := func(name string) bool { return strings.Contains(text, "${"+name+"}") }
	return Limits{NoOrganization: !has("organization"), NoRoles: !has("roleClaim"), NoClient: !has("clientId"), NoIntrospection: !has("introspect")}
}

// Settings are the settings of an adapter for p, in the names that the built-in adapter oidc has.
func Settings(p *Provider) string {
	all := map[string]any{"issuer": p.Issuer(), "clientId": p.ClientID, "redirectUri": RedirectURI, "organizationClaim": organizationClaim}
	switch p.Setup {
	case OneOrganization:
		all["organizationId"] = p.Organization
	case WithRoles:
		all["roleClaim"] = RoleClaim
	case Introspecting:
		all["introspect"], all["clientSecret"] = true, p.ClientSecret
	case AnyOrganization:
	}
	return string(must(json.Marshal(all)))
}

// lacks is the error of a setup that the settings do not allow; nil when they do.
func (s Subject) lacks(setup Setup) error {
	switch {
	case s.Keys == nil:
		return nil
	case setup == OneOrganization && s.Limits.NoOrganization:
		return kit.CannotJudge("the settings name no organization that alone is let in: write ${organization} in them where they name it")
	case setup != OneOrganization && s.Limits.OneOrganization:
		return kit.CannotJudge("the settings always name one organization: write ${organization} in them in its place")
	case setup == WithRoles && s.Limits.NoRoles:
		return kit.DoesNotApply("the settings do not name the claim that holds the role (${roleClaim})")
	case setup == Introspecting && s.Limits.NoIntrospection:
		return kit.DoesNotApply(`the settings cannot have the provider asked about each token ("${introspect}")`)
	}
	return nil
}

// noSetting is the error of a setup that needs a setting that the adapter does not have.
type noSetting string

func (s noSetting) Error() string { return "the adapter has no setting " + string(s) }

// stage is a provider with an adapter that trusts it, for one history.
type stage struct {
	subject  Subject
	provider *Provider // nil when the subject is of another kind
	adapter  auth.Adapter
	world    world
	end      func()
	heard    int // how much was heard before
	given    given
}

// open starts a provider in a setup with an adapter that trusts it. The fault, if any, is there from the first moment.
func (s Subject) open(ctx context.Context, setup Setup, f *fault) (*stage, error) {
	if err := s.lacks(setup); err != nil {
		return nil, err
	}
	st := &stage{subject: s, end: func() {}}
	if s.Heard != nil {
		st.heard = len(s.Heard())
	}
	if s.Keys != nil {
		p, err := NewProvider(s.Keys)
		if err != nil {
			return nil, err
		}
		p.Setup, st.provider = setup, p
		p.setFault(f)
	}
	if err := st.restart(ctx); err != nil {
		st.close()
		return nil, err
	}
	return st, st.learn(ctx)
}

// learn fills the world of the oracle.
func (st *stage) learn(ctx context.Context) error {
	st.world = world{limits: st.subject.Limits, binds: st.subject.Binds, proofs: &proofs{}}
	if st.provider == nil {
		st.world.loose, st.world.roleClaim = true, RoleClaim
		if st.subject.Samples != nil {
			st.world.issuer = st.subject.Samples.Issuer
		}
		return nil
	}
	d, err := st.adapter.Describe(ctx)
	if err != nil {
		st.close()
		return &kit.Failure{Answered: said(auth.Identity{}, err), Demanded: "a description", Sentence: sDescribe}
	}
	st.world.algorithms = d.Algorithms
	if len(d.Algorithms) == 0 {
		st.world.algorithms = []string{"RS256"}
	}
	p := st.provider
	st.world.issuer, st.world.clientID, st.world.signs = p.Issuer(), p.ClientID, p.signed
	if p.Setup == OneOrganization {
		st.world.organization = p.Organization
	}
	if p.Setup == WithRoles {
		st.world.roleClaim = RoleClaim
	}
	return nil
}

// restart replaces the adapter by a fresh one.
func (st *stage) restart(ctx context.Context) error {
	st.end()
	st.end = func() {}
	adapter, end, err := st.subject.Open(ctx, st.provider)
	if wrong, ok := errors.AsType[*plugins.ConfigError](err); ok && st.provider != nil {
		for setup, path := range map[Setup]string{WithRoles: "roleClaim", Introspecting: "introspect"} {
			if st.provider.Setup == setup && slices.ContainsFunc(wrong.Problems, func(p plugins.Problem) bool { return p.Path == path }) {
				return noSetting(path)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("open the adapter: %w", err)
	}
	st.adapter, st.end = adapter, end
	return nil
}

// close ends everything, and looks for secrets in what the adapter wrote.
func (st *stage) close() *kit.Failure {
	st.end()
	st.end = func() {}
	if st.provider != nil {
		st.provider.Close()
		if st.provider.Setup == Introspecting {
			st.given.note("the client secret", st.provider.ClientSecret)
		}
		for _, s := range st.provider.given {
			st.given.note(s.What, s.Text)
		}
	}
	if st.given.leak == nil && st.subject.Heard != nil {
		text := st.subject.Heard()[st.heard:]
		if most := 256 << 10; len(text) > most {
			text = text[:most]
		}
		if err := kit.Tells(text, st.given.all()); err != nil {
			st.given.leak = &kit.Failure{Answered: "of what it logged and printed, " + err.Error(), Demanded: "nothing of that", Sentence: sSilent}
		}
	}
	return st.given.leak
}

// settle closes the stage, and returns the failure of a history or what closing found.
func (st *stage) settle(err error) error {
	if leak := st.close(); err == nil && leak != nil {
		return leak
	}
	return err
}

// patience is how long a call may take if the contract does not say otherwise.
func patience(trial *kit.Trial) time.Duration { return 10*time.Second + 2*trial.Start }

// call makes one call to Verify, with a deadline, and compares the answer with the oracle's.
func (st *stage) call(ctx context.Context, limit time.Duration, req auth.VerifyRequest, adjust func(d *demand, from, to time.Time)) *kit.Failure {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from := time.Now()
	id, err := st.adapter.Verify(ctx, req)
	to := time.Now()
	d := st.judge(req, from, to)
	if adjust != nil {
		adjust(&d, from, to)
	}
	st.given.token("a bearer token", req.Token, err)
	st.given.token("a DPoP proof", req.Headers["dpop"], err)
	return d.check(ctx, id, err)
}

// judge is the oracle of the subject.
func (st *stage) judge(req auth.VerifyRequest, from, to time.Time) demand {
	if st.provider != nil {
		return st.world.verify(req, from, to)
	}
	return st.subject.Samples.judge(&st.world, req, from, to)
}
