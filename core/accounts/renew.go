package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

const (
	renewEarly   = time.Minute      // how long before its expiry a token is renewed
	renewTimeout = 75 * time.Second // per renewal; callers cannot cancel one, because the old refresh token may already be used up
	// The authorization server uses up the old refresh token before it responds, so it pays to wait for a slow
	// response. The rest of renewTimeout must then suffice to store the new token.
	refreshWithin = 30 * time.Second
	storeWithin   = 10 * time.Second
	renewPause    = 30 * time.Second // a token that is refused this soon after a renewal is not renewed again

	// Each renewal holds a database connection while it waits for an authorization server. Servers that hang must not
	// use up all connections, and a single server that hangs must not use up all renewals.
	maxRenewals     = 9
	maxRenewalsEach = 3 // at a time, for the accounts of one app, and for one token endpoint's host
	exchangeWithin  = 10 * time.Second

	maxToken = 64 << 10 // bytes of a token
)

// exchange requests tokens from a token endpoint.
func (m *Manager) exchange(ctx context.Context, g core.Grant, form url.Values) (*oauth2.Token, error) {
	style := oauth2.AuthStyleInParams
	if g.Client.Method == methodBasic {
		style = oauth2.AuthStyleInHeader
	}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	key, err := remote.ParseProofKey(g.ProofKey)
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{ // the only config of the library that accepts any form
		ClientID: g.Client.ID, ClientSecret: g.Client.Secret.Reveal(), TokenURL: g.TokenURL, AuthStyle: style, EndpointParams: form,
	}
	client := *remote.Proving(m.client(g.Private), key)
	client.Transport = roundedLife{client.Transport}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, &client))
	want := "bearer"
	if key != nil {
		want = "dpop"
	}
	switch {
	case err != nil:
		return nil, err
	case !validToken(token.AccessToken) || !strings.EqualFold(token.Type(), want):
		return nil, fmt.Errorf("its response has no %s token", want)
	case len(token.RefreshToken) > maxToken:
		return nil, fmt.Errorf("the refresh token in its response is larger than %d KiB", maxToken>>10)
	}
	return token, nil
}

// roundedLife is an http.RoundTripper for a token endpoint. The oauth2 library rejects a response whose expires_in is
// not a whole number, and with it a refresh token that the server will not send again. It treats a negative expires_in
// as an expired token.
type roundedLife struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l roundedLife) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(withRoundedLife(body)))
	return resp, nil
}

// withRoundedLife returns a response whose expires_in is a whole number, or null if it is not a positive number.
func withRoundedLife(body []byte) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members["expires_in"] == nil {
		return body
	}
	seconds, err := strconv.ParseFloat(strings.Trim(string(members["expires_in"]), `"`), 64)
	members["expires_in"] = json.RawMessage("null")
	if err == nil && seconds > 0 {
		members["expires_in"] = strconv.AppendInt(nil, int64(min(seconds, math.MaxInt32)), 10)
	}
	rounded, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return rounded
}

// validToken reports whether an access token is valid in a header.
func validToken(token string) bool {
	return token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// codeOf returns the OAuth error code with which a token endpoint rejected a request, or "" for an error from exchange
// that is not about the request itself.
func codeOf(err error) string {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refused.ErrorCode == "temporarily_unavailable" || refused.ErrorCode == "server_error" {
		return ""
	}
	return refused.ErrorCode
}

// describe explains an error from a token endpoint. It does not use the error's own text, which contains the response.
func describe(issuer string, err error) string {
	if code := codeOf(err); code != "" {
		return hostOf(issuer) + " rejected the request (" + clip(code) + ")"
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		return hostOf(issuer) + " returned " + refused.Response.Status
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return hostOf(issuer) + " cannot be reached: " + failed.Err.Error()
	}
	return hostOf(issuer) + " did not send a valid response"
}

func clip(text string) string { return text[:min(len(text), 100)] }

// take copies the response of a token endpoint into an account. If the response has no refresh token or no scopes, the
// old ones are kept.
func take(a *core.Account, token *oauth2.Token) {
	a.Grant.AccessToken, a.Grant.RenewedAt, a.ExpiresAt = core.Secret(token.AccessToken), time.Now(), token.Expiry
	if token.RefreshToken != "" {
		a.Grant.RefreshToken = core.Secret(token.RefreshToken)
	}
	if scope, _ := token.Extra("scope").(string); scope != "" {
		a.Scopes = validScopes(strings.FieldsFunc(scope, func(r rune) bool { return r == ' ' || r == ',' }))
	}
}

// usable reports whether an account's token is valid for long enough, and is not the one that was refused.
func usable(a core.Account, refused core.Secret) bool {
	return a.State == core.AccountActive && a.Grant.AccessToken != "" && a.Grant.AccessToken != refused && (a.ExpiresAt.IsZero() || time.Until(a.ExpiresAt) > early(a))
}

// valid reports whether an account's token has not expired and is not the one that was refused.
func valid(a core.Account, refused core.Secret) bool {
	return a.State == core.AccountActive && a.Grant.AccessToken != refused && time.Until(a.ExpiresAt) > 0
}

// early returns how long before its expiry a token is renewed: at most a tenth of its lifetime.
func early(a core.Account) time.Duration {
	return min(renewEarly, a.ExpiresAt.Sub(a.Grant.RenewedAt)/10)
}

// pause returns how long after a renewal a token is not renewed again: at most half of its lifetime.
func pause(a core.Account) time.Duration {
	if a.ExpiresAt.IsZero() {
		return renewPause
	}
	return min(renewPause, a.ExpiresAt.Sub(a.Grant.RenewedAt)/2)
}

// authorizer provides the tokens of one account.
type authorizer struct {
	m       *Manager
	account string
}

// Authorizer implements apps.Accounts.
func (m *Manager) Authorizer(account string) remote.Authorizer { return authorizer{m, account} }

// Token implements remote.Authorizer.
func (t authorizer) Token(ctx context.Context, refused core.Secret) (remote.Token, error) {
	if strings.HasPrefix(t.account, exchangedPrefix) {
		return t.m.exchangedToken(ctx, t.account, refused)
	}
	a, ok := t.m.grants.Get(t.account)
	if ok && usable(a, refused) {
		return tokenOf(a)
	}
	var giveUp <-chan time.Time // when to use the current token although it expires soon
	if ok && valid(a, refused) {
		giveUp = time.After(exchangeWithin)
	}
	for range 2 { // the first renewal may have started before the token was refused
		// All callers share one renewal. It continues even if they cancel.
		result := t.m.renewals.DoChan(t.account, func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
			defer cancel()
			return t.m.renew(ctx, t.account, refused)
		})
		select {
		case r := <-result:
			if r.Err != nil {
				return remote.Token{}, r.Err
			}
			if a := r.Val.(core.Account); a.Grant.AccessToken != refused {
				return tokenOf(a)
			}
		case <-giveUp:
			if valid(a, refused) {
				return tokenOf(a)
			}
			giveUp = nil
		case <-ctx.Done():
			return remote.Token{}, context.Cause(ctx)
		}
	}
	return remote.Token{}, core.Errorf(core.CodeUnavailable, "the app rejects the account's token")
}

func tokenOf(a core.Account) (remote.Token, error) {
	key, err := remote.ParseProofKey(a.Grant.ProofKey)
	return remote.Token{Access: a.Grant.AccessToken, Key: key, Resource: a.Grant.Resource}, err
}

// renew returns an account with a usable token, from the store or from the authorization server.
func (m *Manager) renew(ctx context.Context, id string, refused core.Secret) (core.Account, error) {
	m.mu.Lock()
	since := m.changes
	m.mu.Unlock()
	ended := false
	a, err := m.o.Store.Account(ctx, id)
	change := func(refresh func(ctx context.Context, a *core.Account) (bool, error)) (core.Account, error) {
		release, ok := m.renewing.acquire(ctx, "app "+a.Workspace+" "+a.App, "host "+hostOf(a.Grant.TokenURL))
		defer release()
		if !ok {
			return core.Account{}, errTooMany()
		}
		return m.o.Store.RenewAccount(ctx, id, func(ctx context.Context, a *core.Account) (bool, error) {
			if usable(*a, refused) { // a peer server has renewed it
				return false, nil
			}
			changed, err := refresh(ctx, a)
			ended = changed && a.State == core.AccountLoginNeeded
			return changed, err
		})
	}
	if err == nil && !usable(a, refused) {
		a, err = change(func(ctx context.Context, a *core.Account) (bool, error) { return m.refresh(ctx, a, refused) })
	}
	if a.ID != "" && core.CodeOf(err) == core.CodeUnavailable && m.hasMoved(ctx, a) {
		a, err = change(func(_ context.Context, a *core.Account) (bool, error) {
			a.State = core.AccountLoginNeeded
			return true, core.Errorf(core.CodeLoginNeeded, "the app now names another authorization server")
		})
	}
	if ended && a.State == core.AccountLoginNeeded { // otherwise it was linked again or unlinked in the meantime
		m.Changed(id)
		m.log.Warn("an account needs a new login", "reason", core.TextOf(err), "account", id, "app", a.App, "workspace", a.Workspace, "issuer", a.Issuer)
		m.publish(core.EventAccountLoginNeeded, a)
	}
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return a, core.Errorf(core.CodeLoginNeeded, "the account was unlinked")
	case err != nil:
		return a, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes == since {
		m.grants.Add(id, a)
	}
	return a, nil
}

// refresh exchanges the refresh token of an account for new tokens. Only the authorization server can revoke a grant.
// While it cannot be reached, the old token is used for as long as it is valid.
func (m *Manager) refresh(ctx context.Context, a *core.Account, refused core.Secret) (changed bool, err error) {
	stillValid := valid(*a, refused)
	end, limited := ctx.Deadline()
	switch {
	case a.State == core.AccountLoginNeeded:
		return false, loginEnded()
	case refused != "" && refused == a.Grant.AccessToken && time.Since(a.Grant.RenewedAt) < pause(*a):
		return false, core.Errorf(core.CodeUnavailable, "the app rejected the account's token, although it was just renewed").WithRetryAfter(renewPause)
	case a.Grant.RefreshToken == "" && stillValid:
		return false, nil
	case a.Grant.RefreshToken == "":
		a.State = core.AccountLoginNeeded
		return true, loginEnded()
	case limited && time.Until(end) < refreshWithin+storeWithin && stillValid:
		return false, nil
	case limited && time.Until(end) < refreshWithin+storeWithin: // waiting for other renewals took too long
		return false, errTooMany()
	}
	ctx, cancel := context.WithTimeout(ctx, refreshWithin)
	defer cancel()
	token, err := m.exchange(ctx, a.Grant, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.Grant.RefreshToken.Reveal()}})
	switch code := codeOf(err); {
	case err == nil:
		take(a, token)
		return true, nil
	case endsGrant(code):
		a.State = core.AccountLoginNeeded
		return true, loginEnded()
	case code == "invalid_client": // the next login registers a new client
		if err := m.o.Store.DeleteOAuthClient(ctx, core.ClientRegistration{Workspace: a.Workspace, App: a.App, Issuer: a.Issuer}); err != nil {
			m.log.Warn("could not delete a client that the authorization server no longer knows", "account", a.ID, "error", err)
		}
	}
	if stillValid {
		m.log.Warn("could not renew an account's token; using it until it expires", "account", a.ID, "reason", describe(a.Issuer, err))
		return false, nil
	}
	return false, core.Wrap(core.CodeUnavailable, errors.New(describe(a.Issuer, err)), "the account's token has expired and could not be renewed: "+describe(a.Issuer, err)).WithRetryAfter(5 * time.Second)
}

// endsGrant reports whether an error of a token endpoint means that only a new login helps.
func endsGrant(code string) bool {
	switch code {
	case "invalid_grant", // RFC 6749 section 5.2
		"bad_refresh_token",                                          // GitHub
		"interaction_required", "login_required", "consent_required": // Entra ID, as in OpenID Connect Core 1.0 section 3.1.2.6
		return true
	}
	return false
}

// appServersAge is how long an app's authorization servers are remembered. Without this cache, an app that refuses
// every token would make this server read the app's metadata on every call.
const appServersAge = time.Minute

// appServers contains the authorization servers that an app named; servers is empty if they could not be read.
type appServers struct {
	servers []string
	at      time.Time
}

// hasMoved reports whether the app of an account now names only authorization servers that did not issue the account's
// tokens. If the app then refuses the token, or the issuer no longer renews it, a person has to log in at one of the
// named servers (MCP 2026-07-28, authorization).
func (m *Manager) hasMoved(ctx context.Context, a core.Account) bool {
	app := a.Workspace + " " + a.App
	now, ok := m.appServers.Get(app)
	if !ok || time.Since(now.at) > appServersAge || now.at.Before(a.LinkedAt) {
		found, _, _ := m.discoveries.Do(app, func() (any, error) {
			now := appServers{m.serversOf(ctx, a), time.Now()}
			m.appServers.Add(app, now)
			return now, nil
		})
		now = found.(appServers)
	}
	return len(now.servers) > 0 && !slices.ContainsFunc(now.servers, func(issuer string) bool {
		return strings.TrimSuffix(issuer, "/") == strings.TrimSuffix(a.Issuer, "/")
	})
}

// serversOf returns the authorization servers that the app of an account names, or nil if none of them can be used.
func (m *Manager) serversOf(ctx context.Context, a core.Account) []string {
	in, err := m.o.Store.Installation(ctx, a.Workspace, a.App)
	if err != nil || in.Remote == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	s, err := m.discover(ctx, *in.Remote)
	if err != nil {
		return nil
	}
	return s.Servers
}

func errTooMany() error {
	return core.Errorf(core.CodeUnavailable, "the account's token could not be renewed in time: too many others are being renewed").WithRetryAfter(5 * time.Second)
}

func loginEnded() error {
	return core.Errorf(core.CodeLoginNeeded, "the login for the account is no longer valid")
}

// asNeeded returns the details of a core.CodeLoginNeeded error.
func asNeeded(err error) (core.AccountNeeded, bool) {
	known, ok := errors.AsType[*core.Error](err)
	if !ok {
		return core.AccountNeeded{}, false
	}
	needed, ok := known.Details.(core.AccountNeeded)
	return needed, ok
}
