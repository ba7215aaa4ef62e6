package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	maxPending  = 10_000 // browser logins under way; beyond it the oldest are forgotten
	pendingLife = 10 * time.Minute
)

// LoginStart is a browser login under way.
type LoginStart struct {
	URL     string // where to send the browser
	Binding string // to keep in a short-lived HttpOnly cookie of that browser, and hand to FinishLogin
}

// LoginAnswer is what came back with the browser.
type LoginAnswer struct {
	State   string
	Code    string
	Binding string
}

// pending holds the browser logins under way, by state: nonce and verifier never leave the server.
type pending struct {
	byState *lru.Cache[string, pendingLogin]
}

type pendingLogin struct {
	gate        *gate // the settings it began under
	nonce       string
	verifier    string
	redirectURI string
	returnTo    string
	binding     fingerprint
	expires     time.Time
}

func newPending() *pending {
	byState, _ := lru.New[string, pendingLogin](maxPending) // the one error is a size below 1
	return &pending{byState}
}

// take returns the login of a state, once, and only before it expires.
func (p *pending) take(state string) (pendingLogin, bool) {
	login, ok := p.byState.Get(state)
	if !ok || !p.byState.Remove(state) { // of two that come at a time one removes it
		return pendingLogin{}, false
	}
	return login, time.Now().Before(login.expires)
}

// BeginLogin starts a browser login (authorization code with PKCE, RFC 7636). returnTo is the path
// of this server to go on to; what is not one becomes "/". core.CodeNotConfigured when there is no
// adapter that can log people in, core.CodeUnavailable when it cannot be asked.
func (a *Access) BeginLogin(ctx context.Context, redirectURI, returnTo string) (LoginStart, error) {
	g := a.gate.Load()
	provider, err := g.loginPower(ctx)
	if err != nil {
		return LoginStart{}, err
	}
	binding, state := secret(), secret()
	login := pendingLogin{
		gate: g, nonce: secret(), verifier: secret(), redirectURI: redirectURI, returnTo: localPath(returnTo),
		binding: fingerprintOf(binding), expires: time.Now().Add(pendingLife),
	}
	challenge := sha256.Sum256([]byte(login.verifier))
	url, err := provider.AuthorizeURL(ctx, auth.AuthorizeRequest{
		RedirectURI: redirectURI, State: state, Nonce: login.nonce,
		CodeChallenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
	})
	if err != nil {
		a.log.Warn("A browser login could not begin", "error", err)
		return LoginStart{}, loginFailed(err)
	}
	a.pending.byState.Add(state, login)
	return LoginStart{URL: url, Binding: binding}, nil
}

// FinishLogin ends a browser login, and returns the cookie token and the path to go on to. A state
// that is unknown, used, expired, of another browser, or from before the adapter was swapped is
// core.CodeUnauthenticated, and so is a code that the provider refuses.
func (a *Access) FinishLogin(ctx context.Context, answer LoginAnswer) (token, returnTo string, err error) {
	g := a.gate.Load()
	provider, err := g.loginPower(ctx)
	if err != nil {
		return "", "", err
	}
	login, ok := a.pending.take(answer.State)
	binding := fingerprintOf(answer.Binding)
	if !ok || login.gate != g || answer.Code == "" || subtle.ConstantTimeCompare(binding[:], login.binding[:]) != 1 {
		return "", "", unauthenticated()
	}
	said, err := guarded(func() (auth.Identity, error) {
		return provider.Exchange(ctx, auth.ExchangeRequest{
			RedirectURI: login.redirectURI, Code: answer.Code, Nonce: login.nonce, CodeVerifier: login.verifier,
		})
	})
	var id core.Identity
	if err == nil {
		id, err = a.admit(ctx, said)
	}
	if err != nil {
		a.log.Info("A browser login failed", "error", err)
		return "", "", loginFailed(err)
	}
	if g != a.gate.Load() {
		return "", "", unauthenticated()
	}
	token, err = a.newLogin(ctx, id, g.key.print())
	return token, login.returnTo, err
}

// loginPower is the adapter's power to log people in, if it has it and is set up for it.
func (g *gate) loginPower(ctx context.Context) (auth.Login, error) {
	provider, can := g.adapter.(auth.Login)
	if !can {
		return nil, notConfigured()
	}
	about, err := g.describe(ctx)
	if err != nil {
		return nil, err
	}
	if !about.Login {
		return nil, notConfigured()
	}
	return provider, nil
}

func notConfigured() error {
	return core.Errorf(core.CodeNotConfigured, "no browser login is configured: set auth.adapter to one that can, with its clientId and redirectUri")
}

func loginFailed(err error) error {
	switch {
	case errors.Is(err, plugins.ErrUnauthenticated):
		return unauthenticated()
	case errors.Is(err, plugins.ErrUnimplemented):
		return notConfigured()
	}
	return unavailable(err)
}

// localPath is p if a browser reads it as a path of this server, else "/": //host and /\host are
// other hosts to it.
func localPath(p string) string {
	control := strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
	if control || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.HasPrefix(p, `/\`) {
		return "/"
	}
	return p
}
