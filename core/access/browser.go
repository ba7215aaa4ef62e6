package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	maxPending  = 10_000 // pending browser logins; beyond it the oldest are dropped
	pendingLife = 10 * time.Minute
)

// LoginStart is a pending browser login.
type LoginStart struct {
	URL     string // where to redirect the browser
	Binding string // for a short-lived HttpOnly cookie of the browser; FinishLogin takes it
}

// LoginAnswer is what the identity provider sent back with the browser.
type LoginAnswer struct {
	State   string
	Code    string
	Issuer  string // the parameter iss (RFC 9207), "" when there was none
	Binding string
}

// pending holds the pending browser logins by state. Nonce and verifier never leave the server, except
// to the store that several servers share.
type pending struct {
	byState *lru.Cache[string, pendingLogin]
	shared  Logins // in place of byState; nil for a single server
}

type pendingLogin struct {
	provider    *trusted // that it began with; nil when it may have begun on a peer server
	Issuer      string   // the provider it began with
	Nonce       string
	Verifier    string
	RedirectURI string
	ReturnTo    string
	Binding     fingerprint
	Expires     time.Time
}

func newPending(shared Logins) *pending {
	byState, _ := lru.New[string, pendingLogin](maxPending) // the one error is a size below 1
	return &pending{byState: byState, shared: shared}
}

func (p *pending) put(ctx context.Context, state string, login pendingLogin) error {
	if p.shared == nil {
		p.byState.Add(state, login)
		return nil
	}
	record, err := json.Marshal(login)
	if err == nil {
		err = p.shared.PutLogin(ctx, fingerprintOf(state).String(), record, login.Expires)
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// take returns the login of a state, once, and only before it expires. Otherwise the error is
// core.CodeUnauthenticated, or core.CodeUnavailable when the store fails.
func (p *pending) take(ctx context.Context, state string) (login pendingLogin, err error) {
	if p.shared == nil {
		login, ok := p.byState.Get(state)
		if !ok || !p.byState.Remove(state) || !time.Now().Before(login.Expires) { // of two concurrent requests one removes it
			return pendingLogin{}, unknownState()
		}
		return login, nil
	}
	record, err := p.shared.TakeLogin(ctx, fingerprintOf(state).String())
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return pendingLogin{}, unknownState()
	case err != nil:
		return pendingLogin{}, unavailable(err)
	}
	if err := json.Unmarshal(record, &login); err != nil {
		return pendingLogin{}, core.Wrap(core.CodeUnauthenticated, err, "authorization required")
	}
	return login, nil
}

// of reports whether a pending login began with a provider.
func (l pendingLogin) of(p *trusted, about auth.Description) bool {
	return l.Issuer == about.Issuer && (l.provider == nil || l.provider.Adapter == p.Adapter)
}

// LoginProviders returns the names of the providers that browsers can log in with.
func (a *Access) LoginProviders(ctx context.Context) ([]string, error) {
	all, err := a.gate.Load().loginProviders(ctx)
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return names, err
}

// BeginLogin starts a browser login (authorization code with PKCE, RFC 7636) with the named provider, ""
// for the first one. returnTo is the local path to continue at; anything else becomes "/". The errors are
// core.CodeNotConfigured without an adapter that supports logins, core.CodeBadRequest for a name that none
// of those has, and core.CodeUnavailable when it fails.
func (a *Access) BeginLogin(ctx context.Context, name, redirectURI, returnTo string) (LoginStart, error) {
	all, err := a.gate.Load().loginProviders(ctx)
	if err != nil {
		return LoginStart{}, err
	}
	i := slices.IndexFunc(all, func(p loginProvider) bool { return name == "" || p.Name == name })
	if i < 0 {
		return LoginStart{}, core.Errorf(core.CodeBadRequest, "no provider is named like this; omit provider for a list")
	}
	provider := all[i]
	redirectURI = cmp.Or(provider.RedirectURI, redirectURI)
	binding, state := secret(), secret()
	login := pendingLogin{
		provider: provider.trusted, Issuer: provider.about.Issuer, Nonce: secret(), Verifier: secret(), RedirectURI: redirectURI, ReturnTo: localPath(returnTo),
		Binding: fingerprintOf(binding), Expires: time.Now().Add(pendingLife),
	}
	challenge := sha256.Sum256([]byte(login.Verifier))
	url, err := provider.login.AuthorizeURL(ctx, auth.AuthorizeRequest{
		RedirectURI: redirectURI, State: state, Nonce: login.Nonce,
		CodeChallenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
	})
	if err != nil {
		a.log.Warn("browser login not started", "error", err)
		return LoginStart{}, loginFailed(err)
	}
	if err := a.pending.put(ctx, state, login); err != nil {
		return LoginStart{}, err
	}
	return LoginStart{URL: url, Binding: binding}, nil
}

// FinishLogin completes a browser login, and returns the cookie token and the path to continue at. The
// error is core.CodeUnauthenticated for a state that is unknown, used, expired, of another browser, or
// from before the adapter was replaced, for an answer of another provider, and for a code that the provider
// refuses. Its cause, for the log, says which.
func (a *Access) FinishLogin(ctx context.Context, answer LoginAnswer) (token, returnTo string, err error) {
	g := a.gate.Load()
	all, err := g.loginProviders(ctx)
	if err != nil {
		return "", "", err
	}
	login, err := a.pending.take(ctx, answer.State)
	if err != nil {
		return "", "", err
	}
	binding := fingerprintOf(answer.Binding)
	i := slices.IndexFunc(all, func(p loginProvider) bool { return login.of(p.trusted, p.about) })
	switch {
	case i < 0:
		return "", "", refusedLogin("the auth adapter was replaced since the login began")
	case answer.Code == "":
		return "", "", refusedLogin("the identity provider sent no code")
	case subtle.ConstantTimeCompare(binding[:], login.Binding[:]) != 1:
		return "", "", refusedLogin("the login began in another browser, or the browser did not send the login cookie")
	}
	provider := all[i]
	said, err := provider.exchange(ctx, login, answer)
	var id core.Identity
	if err == nil {
		id, err = a.admit(ctx, provider.trusted, said)
	}
	if err != nil {
		return "", "", loginFailed(err)
	}
	if !a.gate.Load().has(provider.trusted) {
		return "", "", refusedLogin("the auth adapter was replaced during the login")
	}
	token, err = a.newLogin(ctx, id, g.key.print(), said.Renewal)
	return token, login.ReturnTo, err
}

// loginProvider is a provider that browsers can log in with.
type loginProvider struct {
	*trusted
	login auth.Login
	about auth.Description
}

// exchange has the provider trade the code of an answer for an identity, if the answer is its own.
func (p loginProvider) exchange(ctx context.Context, login pendingLogin, answer LoginAnswer) (auth.Identity, error) {
	if err := p.checkIssuer(ctx, answer.Issuer); err != nil {
		return auth.Identity{}, err
	}
	said, err := guarded(func() (auth.Identity, error) {
		return p.login.Exchange(ctx, auth.ExchangeRequest{
			RedirectURI: login.RedirectURI, Code: answer.Code, Nonce: login.Nonce, CodeVerifier: login.Verifier,
		})
	})
	if err == nil && said.Issuer != p.about.Issuer {
		err = fmt.Errorf("the provider %s logged in somebody of another issuer: %w", p.Name, plugins.ErrUnauthenticated)
	}
	return said, err
}

// checkIssuer returns an error when the provider did not send an answer that states this issuer (RFC 9207 section
// 2.4): the code would be shown to another provider than the one that issued it. Without an issuer the answer may be
// that of a provider whose metadata does not announce the parameter.
func (p loginProvider) checkIssuer(ctx context.Context, stated string) error {
	if stated == p.about.Issuer {
		return nil
	}
	document, err := p.Adapter.Metadata(ctx)
	if err != nil && !errors.Is(err, plugins.ErrNotFound) && !errors.Is(err, plugins.ErrUnimplemented) {
		return err
	}
	var metadata struct {
		Issuer string `json:"issuer"`
		States bool   `json:"authorization_response_iss_parameter_supported"`
	}
	if err == nil {
		if err := json.Unmarshal(document, &metadata); err != nil {
			return fmt.Errorf("the metadata of the provider %s cannot be read: %w", p.Name, err)
		}
	}
	switch {
	case stated == "" && metadata.States:
		return fmt.Errorf("the answer states no issuer (iss), which those of the provider %s do: %w", p.Name, plugins.ErrUnauthenticated)
	case stated == "", stated == metadata.Issuer:
		return nil
	}
	return fmt.Errorf("the answer is not of the provider %s, with which the login began: it states another issuer (iss): %w", p.Name, plugins.ErrUnauthenticated)
}

// loginProviders returns the providers that support and are configured for logins;
// core.CodeNotConfigured when there is none.
func (g *gate) loginProviders(ctx context.Context) ([]loginProvider, error) {
	var all []loginProvider
	var failed error
	for _, p := range g.providers {
		login, can := p.Adapter.(auth.Login)
		if !can {
			continue
		}
		about, err := p.describe(ctx)
		switch {
		case err != nil:
			failed = err
		case about.Login:
			all = append(all, loginProvider{p, login, about})
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case failed != nil:
		return nil, failed
	}
	return nil, notConfigured()
}

func notConfigured() error {
	return core.Errorf(core.CodeNotConfigured, "browser login is not configured: set auth.adapter to one that supports it, with clientId and redirectUri")
}

func loginFailed(err error) error {
	switch {
	case errors.Is(err, plugins.ErrUnauthenticated):
		return core.Wrap(core.CodeUnauthenticated, err, "authorization required")
	case errors.Is(err, plugins.ErrUnimplemented):
		return notConfigured()
	}
	return unavailable(err)
}

// localPath is p if a browser treats it as a path of this server, else "/": //host and /\host are other
// hosts.
func localPath(p string) string {
	control := strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
	if control || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.HasPrefix(p, `/\`) {
		return "/"
	}
	return p
}

// refusedLogin is the error of a login that is refused for a reason that only the log may show.
func refusedLogin(reason string) error {
	return core.Wrap(core.CodeUnauthenticated, errors.New(reason), "authorization required")
}

func unknownState() error {
	return refusedLogin("the state is unknown, used or expired")
}
