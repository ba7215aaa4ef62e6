package access

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
)

const (
	cookieLife = 7 * 24 * time.Hour // contract part 2: Max-Age=604800
	maxCookie  = 256                // bytes
	devPrint   = "dev mode"         // no key has this print: logins of dev mode open nothing later
)

// Login trades the API key for a cookie token that is good for 7 days, until Logout, or until the
// key changes. A wrong key is core.CodeUnauthenticated; in dev mode every key is good.
func (a *Access) Login(ctx context.Context, key string) (string, error) {
	g := a.gate.Load()
	if g.dev {
		return a.newLogin(ctx, core.Owner(), devPrint)
	}
	if !g.key.matches(key) {
		return "", unauthenticated()
	}
	return a.newLogin(ctx, core.Owner(), g.key.print())
}

// Logout ends a login. Ending one that is not there is not an error.
func (a *Access) Logout(ctx context.Context, token string) error {
	if token == "" || len(token) > maxCookie {
		return nil
	}
	if err := a.cookies.DeleteCookie(ctx, fingerprintOf(token).String()); err != nil {
		return unavailable(err)
	}
	return nil
}

// EndOldLogins ends for good the logins of other keys than the present one: they shall not come back
// with an old key. Call it at the start.
func (a *Access) EndOldLogins(ctx context.Context) error {
	return a.cookies.EndLogins(ctx, a.gate.Load().key.print())
}

// newLogin makes a token and keeps its hash.
func (a *Access) newLogin(ctx context.Context, id core.Identity, keyPrint string) (string, error) {
	token := secret()
	c := store.Cookie{Hash: fingerprintOf(token).String(), Identity: id, KeyPrint: keyPrint, ExpiresAt: time.Now().Add(cookieLife)}
	if err := a.cookies.PutCookie(ctx, c); err != nil {
		return "", unavailable(err)
	}
	return token, nil
}

// login says whose cookie it is. It counts while the key is the one of its login, and, where an
// identity provider vouched for it, while that provider is the configured one.
func (a *Access) login(ctx context.Context, g *gate, token string) (core.Identity, error) {
	if len(token) > maxCookie {
		return core.Identity{}, unauthenticated()
	}
	c, err := a.cookies.Cookie(ctx, fingerprintOf(token).String())
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return core.Identity{}, unauthenticated()
	case err != nil:
		return core.Identity{}, unavailable(err)
	case c.KeyPrint != g.key.print() || !time.Now().Before(c.ExpiresAt):
		return core.Identity{}, unauthenticated()
	case c.Identity.Issuer == core.IssuerLocal && g.key.set():
		return core.Owner(), nil
	case g.adapter == nil:
		return core.Identity{}, unauthenticated()
	}
	about, err := g.describe(ctx)
	if err != nil {
		return core.Identity{}, err
	}
	if about.Issuer != c.Identity.Issuer {
		return core.Identity{}, unauthenticated()
	}
	return c.Identity, nil
}

// secret is 260 random bits as text that is safe in a cookie, a URL and as a PKCE verifier.
func secret() string { return rand.Text() + rand.Text() }
