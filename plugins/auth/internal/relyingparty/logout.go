package relyingparty

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

	// longestLogout is the maximum time between a logout token's iat and exp: the server remembers its jti that long.
	longestLogout = 24 * time.Hour
)

// VerifyLogout verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6).
func (p *Party) VerifyLogout(ctx context.Context, compact string) (auth.Logout, error) {
	if !p.CanLogin() {
		return auth.Logout{}, fmt.Errorf("%w: logout tokens need the clientId setting", plugins.ErrUnimplemented)
	}
	read, err := readToken(compact, p.options.Algorithms, "logout+jwt")
	if err != nil {
		return auth.Logout{}, err
	}
	if err := p.checkLogout(read.claims, time.Now()); err != nil {
		return auth.Logout{}, err
	}
	if _, err := p.signer(ctx, read); err != nil {
		return auth.Logout{}, err
	}
	expires, _, err := read.claims.instant("exp")
	if err != nil {
		return auth.Logout{}, refuse("the logout token's exp %w", err)
	}
	return auth.Logout{
		Issuer: p.options.Issuer, Subject: read.claims.Text("sub"), SessionID: read.claims.Text("sid"),
		TokenID: read.claims.Text("jti"), ExpiresAt: expires.Add(leeway),
	}, nil
}

func (p *Party) checkLogout(claims Claims, now time.Time) error {
	if iss := claims.Text("iss"); iss != p.options.Issuer {
		return refuse("the logout token is from the issuer %q", clip(iss))
	}
	if !slices.Contains(claims.audience(), p.options.ClientID) {
		return refuse("the logout token is for another client")
	}
	if err := checkTimes(claims, now); err != nil {
		return err
	}
	issued, present, _ := claims.instant("iat")
	expires, _, _ := claims.instant("exp")
	if !present || expires.Sub(issued) > longestLogout {
		return refuse("the logout token must have an iat, and an exp at most %s later", longestLogout)
	}
	if id := claims.Text("jti"); id == "" || len(id) > 1024 {
		return refuse("the logout token has no jti of 1 to 1024 bytes")
	}
	if _, ok := claims["nonce"]; ok {
		return refuse("the logout token has a nonce: it is an id token")
	}
	for _, name := range []string{"sub", "sid"} {
		if _, ok := claims[name]; ok && (claims.Text(name) == "" || len(claims.Text(name)) > 255) {
			return refuse("the logout token's %s is not text of 1 to 255 bytes", name)
		}
	}
	if claims.Text("sub") == "" && claims.Text("sid") == "" {
		return refuse("the logout token names neither a subject nor a session")
	}
	var events map[string]json.RawMessage
	if json.Unmarshal(claims["events"], &events) != nil || !bytes.HasPrefix(bytes.TrimSpace(events[logoutEvent]), []byte("{")) {
		return refuse("the token has no logout event, so it is not a logout token")
	}
	return nil
}
