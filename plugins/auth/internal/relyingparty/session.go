package relyingparty

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
	"golang.org/x/oauth2"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// maxKeyAge is the maximum age of the key set used to check a login.
const maxKeyAge = time.Minute

// renewal is what the adapter needs to recheck a login with the provider. As JSON, it is auth.Identity.Renewal.
type renewal struct {
	Key     string    `json:"key"`               // the thumbprint of the key that signed the id token (RFC 7638)
	Session string    `json:"session,omitempty"` // the sid of the id token
	Refresh string    `json:"refresh,omitempty"`
	Access  string    `json:"access,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of the access token; zero if the provider did not report it
}

func (r renewal) secret() plugins.Secret {
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > 32<<10 {
		return ""
	}
	return plugins.Secret(raw)
}

// newRenewal returns the renewal for a login with these tokens.
func newRenewal(key jwk.Key, claims Claims, answer *oauth2.Token) renewal {
	return renewal{Key: thumbprint(key), Session: claims.Text("sid"), Refresh: answer.RefreshToken, Access: answer.AccessToken, Expires: answer.Expiry}
}

func thumbprint(key jwk.Key) string {
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// CheckSession asks the provider whether a login is still valid: with its refresh token or, without one, with its
// access token at the UserInfo endpoint. The provider must still have the key that signed the id token.
func (p *Party) CheckSession(ctx context.Context, req auth.SessionCheck) (auth.Identity, error) {
	var r renewal
	if json.Unmarshal([]byte(req.Renewal.Reveal()), &r) != nil || r.Key == "" {
		return auth.Identity{}, refuse("the renewal is not from this adapter")
	}
	if err := p.keys.published(ctx, r.Key); err != nil {
		return auth.Identity{}, err
	}
	if r.Refresh != "" {
		return p.refresh(ctx, r, req.Subject)
	}
	if err := p.confirm(ctx, r, req.Subject); err != nil {
		return auth.Identity{}, err
	}
	return p.confirmed(r, req.Subject), nil
}

// confirmed returns the identity for a login that is still valid, without new information about the person.
func (p *Party) confirmed(r renewal, subject string) auth.Identity {
	return auth.Identity{Issuer: p.options.Issuer, Subject: subject, SessionID: r.Session, Renewal: r.secret()}
}

// refresh trades a login's refresh token for new tokens (OpenID Connect Core 1.0 section 12).
func (p *Party) refresh(ctx context.Context, r renewal, subject string) (auth.Identity, error) {
	client, err := p.oauth(ctx)
	if err != nil {
		return auth.Identity{}, err
	}
	answer, err := client.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, p.client), &oauth2.Token{RefreshToken: r.Refresh}).Token()
	if err != nil {
		return auth.Identity{}, refreshError(err)
	}
	next := renewal{Key: r.Key, Session: r.Session, Refresh: answer.RefreshToken, Access: answer.AccessToken, Expires: answer.Expiry}
	id, err := p.refreshed(ctx, next, answer, subject)
	if errors.Is(err, plugins.ErrUnavailable) {
		return p.confirmed(next, subject), nil // the provider has accepted the refresh token, which may be valid only once
	}
	return id, err
}

// refreshed returns the identity for a login whose tokens were refreshed.
func (p *Party) refreshed(ctx context.Context, next renewal, answer *oauth2.Token, subject string) (auth.Identity, error) {
	compact, _ := answer.Extra("id_token").(string)
	if compact == "" { // optional (section 12.2)
		if err := p.confirmSubject(ctx, next, subject); err != nil {
			return auth.Identity{}, err
		}
		return p.confirmed(next, subject), nil
	}
	claims, key, err := p.checkIDToken(ctx, compact)
	if err != nil {
		return auth.Identity{}, err
	}
	if claims.Text("sub") != subject {
		return auth.Identity{}, refuse("the provider's new id token is about another subject")
	}
	next.Key = thumbprint(key)
	if session := claims.Text("sid"); session != "" {
		next.Session = session
	}
	return p.loggedIn(ctx, claims, answer, next)
}

// confirmSubject asks the UserInfo endpoint, if there is one, whether a refreshed access token is about the same
// subject. Without an id token, nothing else would show that.
func (p *Party) confirmSubject(ctx context.Context, r renewal, subject string) error {
	doc, err := p.document.get(ctx)
	if err != nil || doc.UserinfoEndpoint == "" {
		return err
	}
	return p.confirm(ctx, r, subject)
}

// confirm sends a login's access token to the UserInfo endpoint (OpenID Connect Core 1.0 section 5.3).
func (p *Party) confirm(ctx context.Context, r renewal, subject string) error {
	if r.Access == "" || !r.Expires.IsZero() && !time.Now().Before(r.Expires) {
		return refuse("the login's access token has expired, and the provider issued no refresh token (scope offline_access)")
	}
	doc, err := p.document.get(ctx)
	if err != nil || doc.UserinfoEndpoint == "" {
		return err
	}
	body, err := Fetch(ctx, p.client, doc.UserinfoEndpoint, r.Access, documentLimit)
	if answer, ok := errors.AsType[*statusError](err); ok && (answer.code == http.StatusUnauthorized || answer.code == http.StatusForbidden) {
		return refuse("the provider's UserInfo endpoint rejects the login's access token: %d", answer.code)
	}
	if err != nil {
		return unavailable("the request to the provider's UserInfo endpoint failed: %w", err)
	}
	var claims Claims
	if json.Unmarshal(body, &claims) != nil || claims.Text("sub") == "" {
		return unavailable("the provider's UserInfo endpoint returned something other than claims")
	}
	if claims.Text("sub") != subject {
		return refuse("the provider's UserInfo endpoint returned another subject")
	}
	return nil
}

// refreshError returns the error for a failed refresh. The login ends only if the provider no longer accepts the grant,
// or accepts it only after the person logs in again (OpenID Connect Core 1.0 section 3.1.2.6, as sent by Entra ID).
func refreshError(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
	case answer.ErrorCode == "invalid_grant", answer.ErrorCode == "interaction_required", answer.ErrorCode == "login_required", answer.ErrorCode == "consent_required":
		return refuse("the provider refuses the refresh token of the login (%s)", answer.ErrorCode)
	case answer.Response != nil:
		return unavailable("the provider's token endpoint returned %d %s for a refresh", answer.Response.StatusCode, clip(answer.ErrorCode))
	}
	return unavailable("the request to the provider's token endpoint failed: %w", err)
}

// published returns nil if a key is in a key set that was fetched from the provider at most maxKeyAge ago.
func (k *keys) published(ctx context.Context, print string) error {
	set, age, err := k.set.dated(ctx)
	if err != nil {
		return err
	}
	if age > maxKeyAge {
		if set, err = k.set.renew(ctx); err != nil {
			return err
		}
	}
	for _, same := range set {
		if slices.ContainsFunc(same, func(key jwk.Key) bool { return thumbprint(key) == print }) {
			return nil
		}
	}
	return refuse("the provider no longer has the key that signed the login")
}
