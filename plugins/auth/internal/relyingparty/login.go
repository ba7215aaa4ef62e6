package relyingparty

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"
	"golang.org/x/oauth2"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// CanLogin reports whether the options allow a browser login.
func (p *Party) CanLogin() bool { return p.options.ClientID != "" }

// AuthorizeURL returns the URL to redirect the browser to (RFC 6749 section 4.1.1 with RFC 7636).
func (p *Party) AuthorizeURL(ctx context.Context, req auth.AuthorizeRequest) (string, error) {
	if req.State == "" || req.Nonce == "" || req.CodeChallenge == "" {
		return "", fmt.Errorf("%w: a login needs a state, a nonce and a code challenge", plugins.ErrInvalid)
	}
	client, err := p.returningTo(ctx, req.RedirectURI)
	if err != nil {
		return "", err
	}
	return client.AuthCodeURL(req.State,
		oauth2.SetAuthURLParam("nonce", req.Nonce),
		oauth2.SetAuthURLParam("code_challenge", req.CodeChallenge),
		oauth2.SetAuthURLParam("code_challenge_method", "S256")), nil
}

// Exchange trades a code for the person's identity. The id token determines who it is. Missing claims, such as an
// organization or roles, come from the access token if that is a JWT from the same issuer about the same subject and
// not about another organization.
func (p *Party) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	if req.Code == "" || req.CodeVerifier == "" || req.Nonce == "" {
		return auth.Identity{}, refuse("a login needs a code, its verifier and its nonce")
	}
	client, err := p.returningTo(ctx, req.RedirectURI)
	if err != nil {
		return auth.Identity{}, err
	}
	answer, err := client.Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.client), req.Code, oauth2.VerifierOption(req.CodeVerifier))
	if err != nil {
		return auth.Identity{}, exchangeError(err)
	}
	compact, _ := answer.Extra("id_token").(string)
	if compact == "" {
		return auth.Identity{}, refuse("the provider returned no id token: the openid scope is missing")
	}
	claims, key, err := p.checkIDToken(ctx, compact)
	if err != nil {
		return auth.Identity{}, err
	}
	if subtle.ConstantTimeCompare([]byte(claims.Text("nonce")), []byte(req.Nonce)) != 1 {
		return auth.Identity{}, refuse("the id token's nonce does not match this login")
	}
	return p.loggedIn(ctx, claims, answer, newRenewal(key, claims, answer))
}

// checkIDToken is check for an id token, which must have been issued to this client (OpenID Connect Core 1.0 section
// 3.1.3.7).
func (p *Party) checkIDToken(ctx context.Context, compact string) (Claims, jwk.Key, error) {
	claims, key, err := p.check(ctx, compact, []string{p.options.ClientID})
	if err != nil {
		return nil, nil, err
	}
	if azp, present := claims["azp"]; present && claims.Text("azp") != p.options.ClientID {
		return nil, nil, refuse("the id token was issued to another client: %s", clip(string(azp)))
	}
	return claims, key, nil
}

// loggedIn returns the identity for a login whose id token has been verified.
func (p *Party) loggedIn(ctx context.Context, claims Claims, answer *oauth2.Token, r renewal) (auth.Identity, error) {
	if more, err := p.Check(ctx, answer.AccessToken, nil); err == nil && more.Text("sub") == claims.Text("sub") && p.sameOrganization(claims, more) {
		claims = claims.merge(more)
	}
	id, err := p.identity(claims.merge(p.userInfo(ctx, claims, answer.AccessToken)))
	if err != nil {
		return auth.Identity{}, err
	}
	id.SessionID, id.Renewal = r.Session, r.secret()
	return id, nil
}

// sameOrganization reports whether two tokens name the same organizations, or one of them names none. Roles and groups
// in one organization say nothing about another.
func (p *Party) sameOrganization(a, b Claims) bool {
	first, second := a.List(p.options.OrganizationClaim), b.List(p.options.OrganizationClaim)
	return len(first) == 0 || len(second) == 0 || slices.Equal(slices.Sorted(slices.Values(first)), slices.Sorted(slices.Values(second)))
}

// userInfoTimeout limits how long a login waits for a name and an email address.
const userInfoTimeout = 3 * time.Second

// userInfo asks the provider's UserInfo endpoint (OpenID Connect Core 1.0 section 5.3) for a name and an email address
// that the tokens lack. Without a response about the same subject they stay empty; the login does not fail.
func (p *Party) userInfo(ctx context.Context, claims Claims, access string) Claims {
	_, named := claims["name"]
	_, mailed := claims["email"]
	if named && mailed || access == "" {
		return nil
	}
	doc, err := p.document.get(ctx)
	if err != nil || doc.UserinfoEndpoint == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, userInfoTimeout)
	defer cancel()
	body, err := Fetch(ctx, p.client, doc.UserinfoEndpoint, access, documentLimit)
	if err != nil {
		p.options.Log.Warn("the request to the provider's UserInfo endpoint failed; name and e-mail address may be missing", "error", err)
		return nil
	}
	var all Claims
	if json.Unmarshal(body, &all) != nil || all.Text("sub") != claims.Text("sub") {
		p.options.Log.Warn("the provider's UserInfo endpoint returned a different subject from the id token's; its response is ignored")
		return nil
	}
	some := Claims{}
	for _, name := range []string{"name", "preferred_username", "email", "email_verified"} {
		if value, ok := all[name]; ok {
			some[name] = value
		}
	}
	return some
}

// returningTo returns the client for a login that ends at a redirect URI; "" is the one in the settings.
func (p *Party) returningTo(ctx context.Context, redirect string) (*oauth2.Config, error) {
	if redirect = cmp.Or(redirect, p.options.RedirectURI); redirect == "" && p.CanLogin() {
		return nil, fmt.Errorf("%w: a login needs a redirect URI, in the request or in the redirectUri setting", plugins.ErrInvalid)
	}
	client, err := p.oauth(ctx)
	if err != nil {
		return nil, err
	}
	client.RedirectURL = redirect
	return client, nil
}

// oauth returns the client without a redirect URI, which the refresh of a login does not have.
func (p *Party) oauth(ctx context.Context) (*oauth2.Config, error) {
	if !p.CanLogin() {
		return nil, fmt.Errorf("%w: browser login needs the clientId setting", plugins.ErrUnimplemented)
	}
	doc, err := p.document.get(ctx)
	if err != nil {
		return nil, err
	}
	if doc.AuthorizationEndpoint == "" || doc.TokenEndpoint == "" {
		return nil, unavailable("the provider's metadata has no authorization or token endpoint")
	}
	return &oauth2.Config{
		ClientID: p.options.ClientID, ClientSecret: p.options.ClientSecret,
		Scopes:   p.options.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: doc.AuthorizationEndpoint, TokenURL: doc.TokenEndpoint, AuthStyle: p.style(doc.TokenAuthMethods)},
	}, nil
}

// style returns how the client sends its secret: in the header, unless the provider accepts it only in the body (OpenID
// Connect Discovery 1.0 section 3). A public client has no secret and sends its id in the body.
func (p *Party) style(methods []string) oauth2.AuthStyle {
	if p.options.ClientSecret == "" || (len(methods) > 0 && !slices.Contains(methods, "client_secret_basic")) {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// exchangeError keeps the provider's error code and drops the rest of its response.
func exchangeError(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || answer.Response == nil {
		return unavailable("the request to the provider's token endpoint failed: %w", err)
	}
	status := answer.Response.StatusCode
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		return unavailable("the provider's token endpoint returned %d", status)
	}
	return refuse("the provider refused the code: %d %s", status, clip(answer.ErrorCode))
}
