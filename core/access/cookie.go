package access

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
)

const (
	cookieLife = 7 * 24 * time.Hour // Max-Age=604800
	maxCookie  = 256                // length of the longest token that is looked up, in bytes
	devPrint   = "dev mode"         // no key has this fingerprint, so dev mode logins are not accepted later
)

// Login exchanges SERVICE_API_KEY for a cookie token that is valid for 7 days, until Logout, or until the key changes.
// The error for an invalid key is core.CodeUnauthenticated. In dev mode every key is accepted.
func (a *Access) Login(ctx context.Context, key string) (string, error) {
	g := a.gate.Load()
	if g.dev {
		return a.newLogin(ctx, secret(), core.Owner(), devPrint, "")
	}
	if !g.key.matches(key) {
		return "", unauthenticated()
	}
	return a.newLogin(ctx, secret(), core.Owner(), g.key.print(), "")
}

// Logout ends a login and its streams. It does nothing if there is no such login.
func (a *Access) Logout(ctx context.Context, token string) error {
	if token == "" || len(token) > maxCookie {
		return nil
	}
	if err := a.cookies.DeleteCookie(ctx, fingerprintOf(token).String()); err != nil {
		return unavailable(err)
	}
	return nil
}

// EndOldLogins deletes the logins that were created with another key, so that they do not become valid again if an old
// key is restored. Call it at startup.
func (a *Access) EndOldLogins(ctx context.Context) error {
	return a.cookies.EndLogins(ctx, a.gate.Load().key.print())
}

// newLogin stores the token's hash, which makes the token valid, and the renewal if the login is through an identity
// provider. The error is core.CodeUnauthenticated if the provider has revoked the identity since id.Since.
func (a *Access) newLogin(ctx context.Context, token string, id core.Identity, keyPrint string, renewal plugins.Secret) (string, error) {
	now := time.Now()
	checked := now
	if !id.Since.IsZero() {
		checked = id.Since
	}
	sealed, err := sealRenewal(token, renewal)
	if err != nil {
		return "", unavailable(err)
	}
	c := core.Cookie{Hash: fingerprintOf(token).String(), Identity: id, KeyPrint: keyPrint, ExpiresAt: now.Add(cookieLife), Renewal: sealed, CheckedAt: checked}
	if err := a.cookies.PutCookie(ctx, c); err != nil {
		return "", unavailable(err)
	}
	if id.Since.IsZero() || a.revoked == nil {
		return token, nil
	}
	// A revocation deletes only the logins that are already stored, so check for revocations after storing this one.
	// Compare with Since and not with Issued, so that the provider's clock does not matter.
	id.Issued = time.Time{}
	revoked, err := a.revoked.Revoked(ctx, id)
	switch {
	case err == nil && !revoked:
		return token, nil
	case err == nil:
		err = refusedLogin("the identity provider revoked the login before it was complete")
	default:
		err = unavailable(err)
	}
	return "", errors.Join(err, a.Logout(ctx, token))
}

// login authenticates a cookie. A login is valid as long as SERVICE_API_KEY is the same as when it was created. A login
// through an identity provider is valid only while that provider is also configured.
func (a *Access) login(ctx context.Context, g *gate, token string) (core.Identity, error) {
	if len(token) > maxCookie {
		return core.Identity{}, unauthenticated()
	}
	hash := fingerprintOf(token)
	c, err := a.logins.get(ctx, hash, 0, func(ctx context.Context) (core.Cookie, error) {
		return a.cookies.Cookie(ctx, hash.String())
	})
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return core.Identity{}, unauthenticated()
	case err != nil:
		return core.Identity{}, unavailable(err)
	case c.KeyPrint != g.key.print() || !time.Now().Before(c.ExpiresAt):
		return core.Identity{}, unauthenticated()
	case c.Identity.Issuer == core.IssuerLocal && g.key.set():
		return core.Owner(), nil
	}
	p, err := g.ofIssuer(ctx, c.Identity.Issuer)
	switch {
	case err != nil:
		return core.Identity{}, err
	case p == nil:
		return core.Identity{}, unauthenticated()
	}
	if err := a.recheck(ctx, p, token, c); err != nil {
		return core.Identity{}, err
	}
	c.Identity.User, err = g.retained(ctx, c.Identity.User)
	return c.Identity, err
}

// secret returns 260 random bits as text that is safe in a cookie, in a URL and as a PKCE verifier.
func secret() string { return rand.Text() + rand.Text() }
