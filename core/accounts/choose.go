package accounts

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Choose returns the account that c uses to call an app: the one that the call names, the one chosen for the
// conversation, or the default. It returns the zero Account for an app that is not called with linked accounts.
//
// Errors: core.CodeLoginNeeded with core.AccountNeeded if the account does not exist or needs a new login;
// core.CodeForbidden for callers who may not use accounts; core.CodeBadRequest with core.SeveralAccounts if
// the call must name an account.
func (m *Manager) Choose(ctx context.Context, c core.Caller, app string, w core.AccountWanted) (core.Account, error) {
	auth, err := m.apps.AuthOf(c.Workspace.ID, app)
	switch {
	case err != nil:
		return core.Account{}, err
	case !auth.UsesAccounts() && w.Name != "":
		return core.Account{}, core.Errorf(core.CodeBadRequest, "app %s does not use accounts: leave out account", app)
	case !auth.UsesAccounts():
		return core.Account{}, nil
	case auth.Type == core.AuthExchange && w.Name != "" && w.Name != DefaultName:
		return core.Account{}, core.Errorf(core.CodeBadRequest, "app %s exchanges your token, and has no other accounts: leave out account", app)
	case auth.Type == core.AuthExchange:
		return m.exchangedFor(c, app, auth)
	}
	owner, err := m.ownerFor(c, auth)
	if err != nil {
		return core.Account{}, err
	}
	own, err := m.of(ctx, c.Workspace.ID, owner, app)
	if err != nil {
		return core.Account{}, err
	}
	if listing := slices.DeleteFunc(slices.Clone(own), func(a core.Account) bool { return !m.apps.ListsTool(a, w.Tool) }); w.Name == "" && len(listing) > 0 {
		own = listing
	}
	a, found := pick(own, w.Name)
	if !found && w.Name == "" && len(own) > 0 { // the default account does not list the tool
		a, found = own[0], true
	}
	chosen := w.Name != "" || len(own) < 2
	if !chosen && w.Chosen != nil {
		id, err := w.Chosen.ChosenAccount(ctx, app)
		if err != nil {
			return core.Account{}, err
		}
		if i := slices.IndexFunc(own, func(a core.Account) bool { return a.ID == id }); i >= 0 { // otherwise it was unlinked
			a, found, chosen = own[i], true, true
		}
	}
	switch {
	case !found:
		return core.Account{}, m.needed(c, app, cmp.Or(w.Name, DefaultName), nil, "no account is linked")
	case !chosen && !w.ReadOnly:
		return core.Account{}, severalAccounts(app, own)
	case a.State == core.AccountLoginNeeded:
		return core.Account{}, m.needed(c, app, a.Name, nil, "the login for the account "+a.Name+" is no longer valid")
	}
	return a, nil
}

// Offer implements tools.Accounts. If c has an account with the given name for an app, its other accounts for that app
// are ignored.
func (m *Manager) Offer(c core.Caller, app, name string, shared *core.Offer) *core.Offer {
	owner, err := m.ownerFor(c, core.RemoteAuth{Type: core.AuthUser})
	if err != nil {
		return shared
	}
	known, since := m.cached(c.Workspace.ID)
	switch {
	case time.Now().Before(known.until):
	case !m.apps.UsesAccounts(c.Workspace.ID):
		return shared
	case known.accounts != nil: // refresh the cache in the background: it is outdated only if a peer server's notice was lost
		m.read(context.Background(), c.Workspace.ID, since)
	default:
		ctx, cancel := context.WithTimeout(context.Background(), exchangeWithin)
		defer cancel()
		if known.accounts, err = m.inWorkspace(ctx, c.Workspace.ID); err != nil {
			m.log.Warn("could not read a person's accounts; listing the tools without them", "error", err)
		}
	}
	own := known.accounts[owner]
	if len(own) == 0 {
		return shared
	}
	if named := func(a core.Account) bool { return a.App == app && a.Name == name }; slices.ContainsFunc(own, named) {
		own = slices.DeleteFunc(slices.Clone(own), func(a core.Account) bool { return a.App == app && a.Name != name })
	}
	return m.apps.OfferOf(shared, own)
}

// ownerFor returns the User.ID of the owner of the accounts that c uses for an app: "" for shared accounts.
func (m *Manager) ownerFor(c core.Caller, auth core.RemoteAuth) (string, error) {
	switch {
	case auth.Type == core.AuthShared:
		return "", nil
	case c.Issuer == core.IssuerLocal && !m.o.Dev:
		return "", core.Errorf(core.CodeForbidden, "SERVICE_API_KEY does not belong to a person, and can use only shared accounts: log in through an identity provider")
	case c.Scope.Key != "" && !c.Scope.Accounts:
		return "", core.Errorf(core.CodeForbidden, "this API key was created without accounts; create one with accounts (ropewalk key create --accounts)")
	}
	return c.User.ID, nil
}

// of returns an owner's accounts for an app.
func (m *Manager) of(ctx context.Context, workspace, owner, app string) (own []core.Account, err error) {
	all, err := m.inWorkspace(ctx, workspace)
	for _, a := range all[owner] {
		if a.App == app {
			own = append(own, a)
		}
	}
	return own, err
}

// pick returns the account with a name, or the default account for "".
func pick(own []core.Account, name string) (core.Account, bool) {
	i := slices.IndexFunc(own, func(a core.Account) bool { return a.Name == name || name == "" && a.Default })
	if i < 0 {
		return core.Account{}, false
	}
	return own[i], true
}

func severalAccounts(app string, own []core.Account) error {
	var names []string
	for _, a := range own {
		names = append(names, a.Name)
	}
	return core.Errorf(core.CodeBadRequest, "you have several accounts for app %s (%s), and this tool may change something; specify the account, as in %s_%s__TOOL",
		app, strings.Join(names, ", "), app, names[0]).WithDetails(core.SeveralAccounts{App: app, Names: names})
}

// Needed adds to a call's error what the person must do, if the account lacks a login or rights.
func (m *Manager) Needed(c core.Caller, a core.Account, err error) error {
	var scopes []string
	if known, ok := asNeeded(err); ok {
		scopes = validScopes(known.Scopes)
	}
	if strings.HasPrefix(a.ID, exchangedPrefix) {
		return core.Errorf(core.CodeForbidden, "app %s requires more rights than your exchanged token has: %s", a.App, strings.Join(scopes, " "))
	}
	reason := "the login for the account " + a.Name + " is no longer valid"
	if len(scopes) > 0 {
		reason = "the account " + a.Name + " lacks rights"
	}
	return m.needed(c, a.App, a.Name, scopes, reason)
}

func (m *Manager) needed(c core.Caller, app, name string, scopes []string, reason string) error {
	want := core.AccountNeeded{App: app, Name: name, Scopes: scopes, URL: m.LinkURL(c, app, name, scopes)}
	return core.Errorf(core.CodeLoginNeeded, "app %s needs a login: %s. Open %s in a browser, then make the call again", app, reason, want.URL).WithDetails(want)
}

// LinkPath is the path of the page where a person links an account.
const LinkPath = "/v1/accounts/link"

// LinkURL returns the address where c's user links an account. The address is useless to anybody else and contains no
// secret.
func (m *Manager) LinkURL(c core.Caller, app, name string, scopes []string) string {
	q := url.Values{"workspace": {c.Workspace.ID}, "app": {app}, "account": {name}, "for": {c.User.ID}}
	if len(scopes) > 0 {
		q.Set("scope", strings.Join(scopes, " "))
	}
	return cmp.Or(m.o.BaseURL, m.o.URL()) + LinkPath + "?" + q.Encode()
}

// pollEvery is how often Await looks for the login in the store, because the login may have completed on a peer server.
const pollEvery = 2 * time.Second

// Await waits until c's user has linked the account that an error of Choose or Needed describes, and returns the account.
func (m *Manager) Await(ctx context.Context, c core.Caller, want core.AccountNeeded, since time.Time) (core.Account, error) {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		m.mu.Lock()
		changed := m.changed
		m.mu.Unlock()
		all, err := m.o.Store.Accounts(ctx, c.Workspace.ID)
		if err != nil && ctx.Err() == nil {
			return core.Account{}, err
		}
		for _, a := range all {
			if a.App == want.App && a.Name == want.Name && (a.Owner == c.User.ID || a.Owner == "") && a.State == core.AccountActive && !a.LinkedAt.Before(since) {
				return a, nil
			}
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-ctx.Done():
			return core.Account{}, context.Cause(ctx)
		}
	}
}

// List returns the accounts that c sees in its workspace: its own and the shared ones. Admins see all.
func (m *Manager) List(ctx context.Context, c core.Caller) (seen []core.Account, err error) {
	all, err := m.o.Store.Accounts(ctx, c.Workspace.ID)
	for _, a := range all {
		if _, err := m.apps.AuthOf(a.Workspace, a.App); err != nil { // the app was uninstalled, and may be restored
			continue
		}
		if a.Owner == "" || a.Owner == c.User.ID || c.Workspace.Role.Admin() {
			seen = append(seen, a)
		}
	}
	return seen, err
}

// mayChange returns an error if c may not change an account. Users may change their own accounts, and admins also the
// shared ones. If unlink is set, admins may change any account.
func (m *Manager) mayChange(ctx context.Context, c core.Caller, id string, unlink bool) error {
	a, err := m.o.Store.Account(ctx, id)
	if err == nil {
		_, err = m.apps.AuthOf(a.Workspace, a.App)
	}
	admin := c.Workspace.Role.Admin()
	switch {
	case err != nil && core.CodeOf(err) != core.CodeNotFound:
		return err
	case err != nil || a.Workspace != c.Workspace.ID || a.Owner != "" && a.Owner != c.User.ID && !admin:
		return core.Errorf(core.CodeNotFound, "you have no account %.100q in this workspace", id)
	case a.Owner == "" && !admin:
		return core.Errorf(core.CodeForbidden, "only workspace admins can change a shared account")
	case a.Owner != "" && a.Owner != c.User.ID && !unlink:
		return core.Errorf(core.CodeForbidden, "only the account's owner can change it; admins can only unlink it")
	case c.Scope.Key != "" && !c.Scope.Accounts:
		return core.Errorf(core.CodeForbidden, "this API key was created without accounts")
	}
	return nil
}

// Change renames one of c's accounts, or makes it the default.
func (m *Manager) Change(ctx context.Context, c core.Caller, id string, change core.AccountChange) (core.Account, error) {
	if change.Name != nil {
		if err := CheckName(*change.Name); err != nil {
			return core.Account{}, err
		}
	}
	if err := m.mayChange(ctx, c, id, false); err != nil {
		return core.Account{}, err
	}
	a, err := m.o.Store.ChangeAccount(ctx, id, change)
	m.Changed(id)
	if err == nil && change.Default {
		m.apps.DefaultAccountChanged(a.Workspace)
	}
	return a, err
}

// Unlink removes an account: its tokens are no longer used, and are revoked at the authorization server in the
// background.
func (m *Manager) Unlink(ctx context.Context, c core.Caller, id string) error {
	if err := m.mayChange(ctx, c, id, true); err != nil {
		return err
	}
	a, err := m.o.Store.UnlinkAccount(ctx, id)
	m.Changed(id)
	if err != nil {
		return err
	}
	m.apps.AccountUnlinked(id)
	m.log.Info("account unlinked", "account", id, "app", a.App, "workspace", a.Workspace, "owner", a.Owner, "by", c.User.ID)
	m.publish(core.EventAccountUnlinked, a)
	m.wakeRevoker()
	return nil
}
