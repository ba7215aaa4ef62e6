package authtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Subject is the adapter under test: how to get one, and what it is known to accept.
type Subject struct {
	// Open returns a configured adapter that is ready for calls, and a function that stops it. An adapter for OpenID
	// providers is configured for p, with Settings(p) or the equivalent in its own format; for any other adapter, p is
	// nil.
	Open func(ctx context.Context, p *Provider) (auth.Adapter, func(), error)

	Keys    *Keys    // set if the adapter is for OpenID providers
	Samples *Samples // tokens for any other adapter; nil if there are none to try
	Limits  Limits   // which setups the settings do not allow

	// The capabilities that the adapter declares.
	Logins, Revokes, Rechecks, Binds bool

	// Heard returns everything that the adapters from Open have logged and printed so far, complete for processes that
	// have exited. It is nil if the kit cannot see that output.
	Heard func() string

	trial *kit.Trial // of the property under test
}

// Limits are the setups that the settings do not allow. Tests that need them are skipped.
type Limits struct {
	OneOrganization bool // the settings always name the provider's Organization
	NoOrganization  bool // they never name one: tokens of any organization are accepted
	NoRoles         bool // they do not name the role claim
	NoClient        bool // they do not name the provider's ClientID, which logins need
	NoIntrospection bool // they cannot enable introspection
}

// placeholders returns the placeholders that settings may contain, and their values for p.
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

// SettingsFor returns the settings in text with the placeholders replaced for p: "${issuer}" becomes p's issuer, and so
// on. Empty text means Settings(p). aboutProvider reports whether the settings refer to p, which means that the adapter
// is for OpenID providers.
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

// LimitsOf returns the limits of settings in the format of SettingsFor.
func LimitsOf(text string) Limits {
	if strings.TrimSpace(text) == "" {
		return Limits{}
	}
	has := func(name string) bool { return strings.Contains(text, "${"+name+"}") }
	return Limits{NoOrganization: !has("organization"), NoRoles: !has("roleClaim"), NoClient: !has("clientId"), NoIntrospection: !has("introspect")}
}

// Settings returns the settings of an adapter for p, in the format of the built-in adapter oidc.
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

// lacks returns the error for a setup that the settings do not allow, or nil.
func (s Subject) lacks(setup Setup) error {
	switch {
	case s.Keys == nil:
		return nil
	case setup == OneOrganization && s.Limits.NoOrganization:
		return kit.CannotJudge("the settings accept every organization: put ${organization} in the setting that restricts logins to one")
	case setup != OneOrganization && s.Limits.OneOrganization:
		return kit.CannotJudge("the settings always name the same organization: replace its name with ${organization}")
	case setup == WithRoles && s.Limits.NoRoles:
		return kit.DoesNotApply("the settings do not name the claim with the role (${roleClaim})")
	case setup == Introspecting && s.Limits.NoIntrospection:
		return kit.DoesNotApply(`the settings cannot make the adapter ask the provider about each token ("${introspect}")`)
	}
	return nil
}

// noSetting is the error for a setup that needs a setting that the adapter lacks.
type noSetting string

func (s noSetting) Error() string { return "the adapter has no setting " + string(s) }

// stage is a provider with an adapter that trusts it, for one history.
type stage struct {
	Subject
	provider *Provider // nil if the adapter is not for OpenID providers
	adapter  auth.Adapter
	world    world
	end      func()
	started  time.Time // when the current adapter was started
	heard    int       // length of Heard's output when the stage was opened
	given    given
}

// open starts a provider in a setup, with an adapter that trusts it. The fault, if any, is active from the start.
func (s Subject) open(ctx context.Context, setup Setup, f *fault) (*stage, error) {
	if err := s.lacks(setup); err != nil {
		return nil, err
	}
	st := &stage{Subject: s, end: func() {}}
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

// learn sets up what the oracle knows.
func (st *stage) learn(ctx context.Context) error {
	st.world = world{limits: st.Limits, binds: st.Binds, keys: st.Keys, proofs: &sync.Map{}}
	if st.provider == nil {
		st.world.loose, st.world.roleClaim = true, RoleClaim
		if st.Samples != nil {
			st.world.issuer = st.Samples.Issuer
		}
		return nil
	}
	d, err := st.adapter.Describe(ctx)
	if err != nil {
		st.close()
		return kit.NewFailure(describeResult(auth.Identity{}, err), "a description", sDescribe)
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

// restart replaces the adapter with a fresh one.
func (st *stage) restart(ctx context.Context) error {
	st.end()
	st.end, st.started = func() {}, time.Now()
	adapter, end, err := st.Open(ctx, st.provider)
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

// close stops the adapter and the provider, and looks for secrets in what the adapter wrote.
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
	if st.given.leak == nil && st.Heard != nil {
		text := st.Heard()[st.heard:]
		if most := 256 << 10; len(text) > most {
			text = text[:most]
		}
		if err := kit.Tells(text, st.given.all()); err != nil {
			st.given.leak = kit.NewFailure("its log and output: "+err.Error(), "no secret in the log or the output", sSilent)
		}
	}
	return st.given.leak
}

// play runs a history, and closes the stage. A leak that close finds ends the property, too.
func (st *stage) play(history func()) {
	err := kit.Catch(history)
	if leak := st.close(); err == nil && leak != nil {
		err = leak
	}
	kit.Must(err)
}

// patience returns how long a call may take unless the contract says otherwise.
func (s Subject) patience() time.Duration { return 10*time.Second + 2*s.trial.Start }

// prompt returns how long after its deadline a call may return.
func (s Subject) prompt() time.Duration { return s.trial.Limit(3 * time.Second) }

// bearer returns the request with a token for the provider's audience.
func (st *stage) bearer(token string) auth.VerifyRequest {
	return auth.VerifyRequest{Token: token, Audiences: []string{st.provider.Audience}}
}

// verify makes one call to Verify, as the last of the steps, and compares the result with the oracle's.
func (st *stage) verify(ctx context.Context, req auth.VerifyRequest, steps ...string) {
	st.call(ctx, st.patience(), req, nil, steps...)
}

// call is verify with a deadline. adjust changes the demand; it may be nil.
func (st *stage) call(ctx context.Context, limit time.Duration, req auth.VerifyRequest, adjust func(d *demand, from time.Time), steps ...string) {
	_, wrong := st.ask(ctx, limit, req, adjust)
	kit.Must(kit.After(wrong, steps...))
}

// ask is call for one of several calls: it returns the error of Verify, and what is wrong with the result.
func (st *stage) ask(ctx context.Context, limit time.Duration, req auth.VerifyRequest, adjust func(d *demand, from time.Time)) (err, wrong error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from := time.Now()
	id, err := st.adapter.Verify(ctx, req)
	d := st.judge(req, from, time.Now())
	if adjust != nil {
		adjust(&d, from)
	}
	st.given.token("a bearer token", req.Token, err)
	st.given.token("a DPoP proof", req.Headers["dpop"], err)
	return err, d.check(ctx, id, err)
}

// judge asks the subject's oracle.
func (st *stage) judge(req auth.VerifyRequest, from, to time.Time) demand {
	if st.provider != nil {
		return st.world.verify(req, from, to)
	}
	return st.Samples.judge(&st.world, req, from, to)
}

// given keeps some of the secrets that an adapter was given, and looks for them in its errors. It is safe for
// concurrent use.
type given struct {
	mu    sync.Mutex
	kept  secrets
	seen  int
	leak  *kit.Failure
	moved int
}

// keptSecrets is roughly how many secrets are kept, to look for them in what the adapter wrote.
const keptSecrets = 60

// token keeps a token, and looks for it and its parts in the error that the adapter returned when given it.
func (l *given) token(what, token string, err error) {
	if len(token) < 16 {
		return
	}
	l.note(what, token)
	if err == nil {
		return
	}
	text := err.Error()
	for i, part := range append(strings.Split(token, "."), token) {
		if len(part) >= 24 && i != 0 && strings.Contains(text, part) {
			l.report(kit.NewFailure(clip(text, 60), "an error that contains no part of "+what, sSilent))
		}
	}
}

// error keeps a secret, and looks for it in an error in any encoding.
func (l *given) error(what, secret string, err error) {
	l.note(what, secret)
	if err != nil && kit.Tells(err.Error(), []kit.Secret{{What: what, Text: secret}}) != nil {
		l.report(kit.NewFailure("an error that contains "+what, "an error without it", sSilent))
	}
}

func (l *given) report(f *kit.Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leak == nil {
		l.leak = f
	}
}

// note keeps the first secrets. After that, every fiftieth replaces an older one.
func (l *given) note(what, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen++
	var parts secrets
	parts.add(what, text)
	switch {
	case len(l.kept) < keptSecrets:
		l.kept = append(l.kept, parts...)
	case l.seen%50 == 0:
		l.moved = (l.moved + 3) % (keptSecrets - 2)
		copy(l.kept[l.moved:], parts)
	}
}

func (l *given) all() []kit.Secret {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
