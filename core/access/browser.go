package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
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
	Binding string
}

// pending holds the pending browser logins by state. Nonce and verifier never leave the server, except
// to the store that several servers share.
type pending struct {
	byState *lru.Cache[string, pendingLogin]
	shared  Logins // in place of byState; nil for a single server
}

type pendingLogin struct {
	gate        *gate  // the settings it began under; nil when it may have begun on a peer server
	Issuer      string // the provider it began with
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

// of reports whether a pending login began with the current provider.
func (l pendingLogin) of(g *gate, about auth.Description) bool {
	return (l.gate == nil || l.gate == g) && l.Issuer == about.Issuer
}

// BeginLogin starts a browser login (authorization code with PKCE, RFC 7636). returnTo is the local path
// to continue at; anything else becomes "/". core.CodeNotConfigured without an adapter that supports
// logins, core.CodeUnavailable when it fails.
func (a *Access) BeginLogin(ctx context.Context, redirectURI, returnTo string) (LoginStart, error) {
	g := a.gate.Load()
	provider, about, err := g.loginProvider(ctx)
	if err != nil {
		return LoginStart{}, err
	}
	binding, state := secret(), secret()
	login := pendingLogin{
		gate: g, Issuer: about.Issuer, Nonce: secret(), Verifier: secret(), RedirectURI: redirectURI, ReturnTo: localPath(returnTo),
		Binding: fingerprintOf(binding), Expires: time.Now().Add(pendingLife),
	}
	challenge := sha256.Sum256([]byte(login.Verifier))
	url, err := provider.AuthorizeURL(ctx, auth.AuthorizeRequest{
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
// from before the adapter was replaced, and for a code that the provider refuses. Its cause, for the
// log, says which.
func (a *Access) FinishLogin(ctx context.Context, answer LoginAnswer) (token, returnTo string, err error) {
	g := a.gate.Load()
	provider, about, err := g.loginProvider(ctx)
	if err != nil {
		return "", "", err
	}
	login, err := a.pending.take(ctx, answer.State)
	if err != nil {
		return "", "", err
	}
	binding := fingerprintOf(answer.Binding)
	switch {
	case !login.of(g, about):
		return "", "", refusedLogin("the auth adapter was replaced since the login began")
	case answer.Code == "":
		return "", "", refusedLogin("the identity provider sent no code")
	case subtle.ConstantTimeCompare(binding[:], login.Binding[:]) != 1:
		return "", "", refusedLogin("the login began in another browser, or the browser did not send the login cookie")
	}
	said, err := guarded(func() (auth.Identity, error) {
		return provider.Exchange(ctx, auth.ExchangeRequest{
			RedirectURI: login.RedirectURI, Code: answer.Code, Nonce: login.Nonce, CodeVerifier: login.Verifier,
		})
	})
	var id core.Identity
	if err == nil {
		id, err = a.admit(ctx, said)
	}
	if err != nil {
		return "", "", loginFailed(err)
	}
	if g != a.gate.Load() {
		return "", "", refusedLogin("the auth adapter was replaced during the login")
	}
	token, err = a.newLogin(ctx, id, g.key.print())
	return token, login.ReturnTo, err
}

// loginProvider returns the adapter as a login provider, if it supports and is configured for logins.
func (g *gate) loginProvider(ctx context.Context) (auth.Login, auth.Description, error) {
	provider, can := g.adapter.(auth.Login)
	if !can {
		return nil, auth.Description{}, notConfigured()
	}
	about, err := g.describe(ctx)
	if err != nil {
		return nil, auth.Description{}, err
	}
	if !about.Login {
		return nil, auth.Description{}, notConfigured()
	}
	return provider, about, nil
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
