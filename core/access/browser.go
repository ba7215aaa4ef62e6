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

// pending holds the browser logins under way, by state: nonce and verifier never leave the server,
// but for the store that several servers share.
type pending struct {
	byState *lru.Cache[string, pendingLogin]
	shared  Logins // in place of byState; nil for a server on its own
}

type pendingLogin struct {
	gate        *gate  // the settings it began under; nil when that was perhaps on another server
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

// take returns the login of a state, once, and only before it expires: core.CodeUnauthenticated
// else, or core.CodeUnavailable when it cannot be told.
func (p *pending) take(ctx context.Context, state string) (login pendingLogin, err error) {
	if p.shared == nil {
		login, ok := p.byState.Get(state)
		if !ok || !p.byState.Remove(state) || !time.Now().Before(login.Expires) { // of two that come at a time one removes it
			return pendingLogin{}, unauthenticated()
		}
		return login, nil
	}
	record, err := p.shared.TakeLogin(ctx, fingerprintOf(state).String())
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return pendingLogin{}, unauthenticated()
	case err != nil:
		return pendingLogin{}, unavailable(err)
	}
	if err := json.Unmarshal(record, &login); err != nil {
		return pendingLogin{}, unauthenticated()
	}
	return login, nil
}

// of reports whether a login under way began with the provider that counts now.
func (l pendingLogin) of(g *gate, about auth.Description) bool {
	return (l.gate == nil || l.gate == g) && l.Issuer == about.Issuer
}

// BeginLogin starts a browser login (authorization code with PKCE, RFC 7636). returnTo is the path
// of this server to go on to; what is not one becomes "/". core.CodeNotConfigured when there is no
// adapter that can log people in, core.CodeUnavailable when it cannot be asked.
func (a *Access) BeginLogin(ctx context.Context, redirectURI, returnTo string) (LoginStart, error) {
	g := a.gate.Load()
	provider, about, err := g.loginPower(ctx)
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
		a.log.Warn("A browser login could not begin", "error", err)
		return LoginStart{}, loginFailed(err)
	}
	if err := a.pending.put(ctx, state, login); err != nil {
		return LoginStart{}, err
	}
	return LoginStart{URL: url, Binding: binding}, nil
}

// FinishLogin ends a browser login, and returns the cookie token and the path to go on to. A state
// that is unknown, used, expired, of another browser, or from before the adapter was swapped is
// core.CodeUnauthenticated, and so is a code that the provider refuses.
func (a *Access) FinishLogin(ctx context.Context, answer LoginAnswer) (token, returnTo string, err error) {
	g := a.gate.Load()
	provider, about, err := g.loginPower(ctx)
	if err != nil {
		return "", "", err
	}
	login, err := a.pending.take(ctx, answer.State)
	if err != nil {
		return "", "", err
	}
	binding := fingerprintOf(answer.Binding)
	if !login.of(g, about) || answer.Code == "" || subtle.ConstantTimeCompare(binding[:], login.Binding[:]) != 1 {
		return "", "", unauthenticated()
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
		a.log.Info("A browser login failed", "error", err)
		return "", "", loginFailed(err)
	}
	if g != a.gate.Load() {
		return "", "", unauthenticated()
	}
	token, err = a.newLogin(ctx, id, g.key.print())
	return token, login.ReturnTo, err
}

// loginPower is the adapter's power to log people in, if it has it and is set up for it.
func (g *gate) loginPower(ctx context.Context) (auth.Login, auth.Description, error) {
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
