package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

const (
	renewEarly   = time.Minute      // how long before its expiry a token is renewed
	renewTimeout = 45 * time.Second // of a renewal, which callers cannot cancel because the old refresh token may already be used up
	renewPause   = 30 * time.Second // a token that is refused this soon after a renewal is not renewed again

	// Each renewal holds a database connection while it waits for an authorization server. Servers that hang must leave
	// connections for everybody else, and one that hangs must leave renewals for the others.
	maxRenewals     = 9
	maxRenewalsEach = 3 // of the accounts at one app, and at one token endpoint's host
	exchangeWithin  = 10 * time.Second

	maxToken = 64 << 10 // bytes of a token
)

// exchange asks a token endpoint for tokens.
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
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, remote.Proving(m.client(g.Private), key)))
	want := "bearer"
	if key != nil {
		want = "dpop"
	}
	switch {
	case err != nil:
		return nil, err
	case !validToken(token.AccessToken) || !strings.EqualFold(token.Type(), want):
		return nil, fmt.Errorf("its answer has no %s token", want)
	case len(token.RefreshToken) > maxToken:
		return nil, fmt.Errorf("the refresh token in its answer is larger than %d KiB", maxToken>>10)
	}
	return token, nil
}

// validToken reports whether an access token fits in a header.
func validToken(token string) bool {
	return token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// codeOf returns the OAuth error code in an error from exchange, or "".
func codeOf(err error) string {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return refused.ErrorCode
	}
	return ""
}

// describe explains an error from a token endpoint. It does not use the error's own text, which contains the response.
func describe(issuer string, err error) string {
	if code := codeOf(err); code != "" {
		return hostOf(issuer) + " refused it (" + clip(code) + ")"
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		return hostOf(issuer) + " returned " + refused.Response.Status
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return hostOf(issuer) + " cannot be reached: " + failed.Err.Error()
	}
	return hostOf(issuer) + " did not send a valid answer"
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
			return core.Account{}, core.Errorf(core.CodeUnavailable, "the token of the account could not be renewed in time: too many others are being renewed").WithRetryAfter(5 * time.Second)
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
			return true, core.Errorf(core.CodeLoginNeeded, "the app names another authorization server now")
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

// refresh exchanges the refresh token of an account for new tokens. Only the authorization server can end a grant: while
// it cannot be reached, the old token is used for as long as it is valid.
func (m *Manager) refresh(ctx context.Context, a *core.Account, refused core.Secret) (changed bool, err error) {
	still := a.State == core.AccountActive && a.Grant.AccessToken != refused && time.Until(a.ExpiresAt) > 0
	switch {
	case a.State == core.AccountLoginNeeded:
		return false, loginEnded()
	case refused != "" && refused == a.Grant.AccessToken && time.Since(a.Grant.RenewedAt) < pause(*a):
		return false, core.Errorf(core.CodeUnavailable, "the app rejected the account's token, although it was just renewed").WithRetryAfter(renewPause)
	case a.Grant.RefreshToken == "" && still:
		return false, nil
	case a.Grant.RefreshToken == "":
		a.State = core.AccountLoginNeeded
		return true, loginEnded()
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	token, err := m.exchange(ctx, a.Grant, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.Grant.RefreshToken.Reveal()}})
	switch code := codeOf(err); {
	case err == nil:
		take(a, token)
		return true, nil
	case code == "invalid_grant":
		a.State = core.AccountLoginNeeded
		return true, loginEnded()
	case code == "invalid_client": // the next login registers a new one
		if err := m.o.Store.DeleteOAuthClient(ctx, core.ClientRegistration{Workspace: a.Workspace, App: a.App, Issuer: a.Issuer}); err != nil {
			m.log.Warn("a client that an authorization server no longer knows is kept", "account", a.ID, "error", err)
		}
	}
	if still {
		m.log.Warn("token of an account not renewed; it is used until it expires", "account", a.ID, "reason", describe(a.Issuer, err))
		return false, nil
	}
	return false, core.Wrap(core.CodeUnavailable, errors.New(describe(a.Issuer, err)), "the token of the account has expired and could not be renewed: "+describe(a.Issuer, err)).WithRetryAfter(5 * time.Second)
}

// namedFor is how long an app's authorization servers are remembered. Without that, an app that refuses every token
// would make this server read its metadata for every call.
const namedFor = time.Minute

// named holds the authorization servers that an app named; servers is empty if they could not be read.
type named struct {
	servers []string
	at      time.Time
}

// hasMoved reports whether the app of an account now names other authorization servers than the one that issued its
// tokens. If the app refuses the token, or that server no longer renews it, a person has to log in at another one (MCP
// 2026-07-28, authorization).
func (m *Manager) hasMoved(ctx context.Context, a core.Account) bool {
	app := a.Workspace + " " + a.App
	now, ok := m.named.Get(app)
	if !ok || time.Since(now.at) > namedFor || now.at.Before(a.LinkedAt) {
		found, _, _ := m.discoveries.Do(app, func() (any, error) {
			now := named{m.serversOf(ctx, a), time.Now()}
			m.named.Add(app, now)
			return now, nil
		})
		now = found.(named)
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

func loginEnded() error {
	return core.Errorf(core.CodeLoginNeeded, "the login for the account has ended")
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
