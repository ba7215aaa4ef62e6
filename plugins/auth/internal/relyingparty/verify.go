package relyingparty

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
)

// leeway is how far the provider's clock may differ from this one.
const leeway = 30 * time.Second

// Check returns the claims of a token that this party's issuer signed, that is valid now, and that is for one of
// audiences (any, if empty). It rejects tokens that cannot be valid before it looks for a key, so that they neither
// cause a request nor wait for an unavailable provider.
func (p *Party) Check(ctx context.Context, compact string, audiences []string) (Claims, error) {
	claims, _, err := p.check(ctx, compact, audiences)
	return claims, err
}

// check does what Check does, and also returns the signing key.
func (p *Party) check(ctx context.Context, compact string, audiences []string) (Claims, jwk.Key, error) {
	read, err := readToken(compact, p.options.Algorithms, "at+jwt")
	if err != nil {
		return nil, nil, err
	}
	if err := p.checkClaims(read.claims, audiences); err != nil {
		return nil, nil, err
	}
	key, err := p.signer(ctx, read)
	return read.claims, key, err
}

// signer returns the provider's key that signed a token.
func (p *Party) signer(ctx context.Context, read token) (jwk.Key, error) {
	candidates, err := p.keys.find(ctx, read.kid)
	if err != nil {
		return nil, err
	}
	for _, key := range candidates {
		if key.Algorithm().String() != read.alg { // the JWS library verifies with the key's algorithm, whatever the header says
			continue
		}
		if _, err := jws.Verify([]byte(read.compact), jws.WithKey(key.Algorithm(), key)); err == nil {
			return key, nil
		}
	}
	return nil, refuse("the token's signature is not the provider's")
}

func (p *Party) checkClaims(claims Claims, audiences []string) error {
	if iss := claims.Text("iss"); iss != p.options.Issuer {
		return refuse("the token is from the issuer %q", clip(iss))
	}
	if sub := claims.Text("sub"); sub == "" || len(sub) > 255 {
		return refuse("the token has no subject of 1 to 255 bytes")
	} else if strings.ContainsRune(sub, utf8.RuneError) { // an incomplete character looks like any other incomplete one
		return refuse("the token's subject is not valid Unicode")
	}
	if _, bound := claims["cnf"]; bound {
		return refuse("the token is bound to a key of its holder (cnf), so it is not a bearer token")
	}
	if _, event := claims["events"]; event {
		return refuse("the token has an events claim: it is a logout token or another RFC 8417 token, not an access token")
	}
	if err := checkTimes(claims, time.Now()); err != nil {
		return err
	}
	if len(audiences) == 0 {
		return nil
	}
	for _, aud := range claims.audience() {
		if slices.Contains(audiences, aud) {
			return nil
		}
	}
	return refuse("the token is for another audience")
}

func checkTimes(claims Claims, now time.Time) error {
	exp, present, err := claims.instant("exp")
	switch {
	case err != nil:
		return refuse("the token's exp %w", err)
	case !present:
		return refuse("the token has no expiry")
	case !now.Before(exp.Add(leeway)):
		return refuse("the token has expired")
	}
	for _, name := range []string{"nbf", "iat"} {
		at, present, err := claims.instant(name)
		if err != nil {
			return refuse("the token's %s %w", name, err)
		}
		if present && at.After(now.Add(leeway)) {
			return refuse("the token is not valid yet (%s)", name)
		}
	}
	return nil
}

// audience returns the aud claim. Its name is never treated as a path.
func (c Claims) audience() []string {
	if _, ok := c["aud"]; !ok {
		return nil
	}
	return c.List("aud")
}
