package accounts

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

const (
	exchangedLife = time.Minute // assumed for a token with an unknown expiry
	checkEvery    = time.Minute // minimum time between two checks of a workspace for unpublished apps
)

// exchangedPrefix begins the IDs of accounts that exist only in memory.
const exchangedPrefix = "exchanged_"

// exchanged is a person's account for an app with core.AuthExchange. It exists only in memory. The manager's mutex
// guards it.
type exchanged struct {
	account core.Account // its grant has the token of the app
	auth    core.RemoteAuth
	subject core.Secret // the caller's token
}

// exchangedFor returns the account of a caller for an app with core.AuthExchange, and remembers the caller's token.
func (m *Manager) exchangedFor(c core.Caller, app string, auth core.RemoteAuth) (core.Account, error) {
	if c.Bearer == "" {
		return core.Account{}, core.Errorf(core.CodeForbidden, "app %s needs a token from your identity provider, which the server exchanges for the app's. A browser session, an API key or SERVICE_API_KEY cannot be exchanged: send a token from the identity provider", app)
	}
	// Different settings result in a different account, with its own connections and tokens. So does another token: the
	// provider may exchange it for fewer rights, or not at all.
	id := exchangedPrefix + hashOf(strings.Join([]string{c.Workspace.ID, app, c.User.ID, c.Bearer.Reveal(), auth.TokenURL, auth.Audience, auth.ClientID, auth.Scopes}, "\x00"))[:32]
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.exchanges.Get(id)
	if !ok {
		e = &exchanged{subject: c.Bearer, account: core.Account{
			ID: id, Workspace: c.Workspace.ID, Owner: c.User.ID, App: app, Name: DefaultName, State: core.AccountActive, Default: true, Exchanged: true, Issuer: auth.TokenURL,
		}}
		m.exchanges.Add(id, e)
	}
	e.auth = auth // its secret may have changed
	return e.account, nil
}

// exchangedToken returns the token of an account from exchangedFor. It is cached until it expires or the app refuses
// it.
func (m *Manager) exchangedToken(ctx context.Context, id string, refused core.Secret) (remote.Token, error) {
	if a, err := m.account(ctx, id); err == nil && usable(a, refused) {
		return tokenOf(a)
	}
	result := m.renewals.DoChan(id, func() (any, error) { return m.exchangeNow(context.WithoutCancel(ctx), id, refused) })
	select {
	case r := <-result:
		token, _ := r.Val.(remote.Token)
		return token, r.Err
	case <-ctx.Done():
		return remote.Token{}, context.Cause(ctx)
	}
}

func (m *Manager) exchangeNow(ctx context.Context, id string, refused core.Secret) (remote.Token, error) {
	m.mu.Lock()
	e, ok := m.exchanges.Get(id)
	var now exchanged
	if ok {
		now = *e
	}
	m.mu.Unlock()
	a, auth, subject := now.account, now.auth, now.subject
	switch {
	case !ok:
		return remote.Token{}, core.Errorf(core.CodeUnavailable, "the caller's token is no longer known: make the call again")
	case usable(a, refused):
		return tokenOf(a)
	case refused != "" && refused == a.Grant.AccessToken && time.Since(a.Grant.RenewedAt) < pause(a):
		return remote.Token{}, core.Errorf(core.CodeUnavailable, "the app rejected the token, although it was just exchanged").WithRetryAfter(renewPause)
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	const tokenType = "urn:ietf:params:oauth:token-type:access_token" //nolint:gosec // the name of a kind of token
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {subject.Reveal()}, "subject_token_type": {tokenType},
		"requested_token_type": {tokenType}, "audience": {auth.Audience},
	}
	if auth.Scopes != "" {
		form.Set("scope", auth.Scopes)
	}
	client := core.OAuthClient{ID: auth.ClientID, Secret: auth.ClientSecret, Method: methodFor(auth.ClientSecret, "", server{})}
	grant := core.Grant{Client: client, TokenURL: auth.TokenURL, Private: true} // the operator chose the address
	token, err := m.exchange(ctx, grant, form)
	if err == nil && token.AccessToken == subject.Reveal() {
		err = errors.New("it returned the caller's own token")
	}
	switch {
	case codeOf(err) != "":
		return remote.Token{}, core.Errorf(core.CodeForbidden, "your token was not exchanged for a token for app %s: %s", a.App, describe(auth.TokenURL, err))
	case err != nil:
		return remote.Token{}, core.Errorf(core.CodeUnavailable, "your token was not exchanged for a token for app %s: %s", a.App, describe(auth.TokenURL, err)).WithRetryAfter(5 * time.Second)
	}
	a.Grant = grant
	take(&a, token)
	if a.ExpiresAt.IsZero() {
		a.ExpiresAt = time.Now().Add(exchangedLife)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.exchanges.Get(id); ok {
		now.account = a
	}
	return tokenOf(a)
}

// account returns an account from the store or from exchangedFor.
func (m *Manager) account(ctx context.Context, id string) (core.Account, error) {
	m.mu.Lock()
	if e, ok := m.exchanges.Get(id); ok {
		defer m.mu.Unlock()
		return e.account, nil
	}
	m.mu.Unlock()
	return m.o.Store.Account(ctx, id)
}

// PublishExchangeApps publishes apps with core.AuthExchange in the background, unless they are published already.
// Nobody links an account for such an app, so it is published with the lists of the first person who lists tools.
func (m *Manager) PublishExchangeApps(c core.Caller) {
	if c.Bearer == "" {
		return
	}
	m.mu.Lock()
	last, ok := m.checked.Get(c.Workspace.ID)
	due := !ok || time.Since(last) > checkEvery
	if due {
		m.checked.Add(c.Workspace.ID, time.Now())
	}
	m.mu.Unlock()
	if !due {
		return
	}
	for _, app := range m.apps.ExchangeApps(c.Workspace.ID) {
		auth, err := m.apps.AuthOf(c.Workspace.ID, app)
		if err != nil { // it was uninstalled
			continue
		}
		if a, err := m.exchangedFor(c, app, auth); err == nil {
			m.apps.AccountLinked(a)
		}
	}
}
