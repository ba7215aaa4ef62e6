package apps

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// anonymousTimeout limits how long an app may take to list its tools without a login.
const anonymousTimeout = 5 * time.Second

// An app that uses linked accounts has no connection that all clients share. Its shared instance shows the published
// lists, and each account in use has its own instance in the session pool. A person with accounts sees what those
// accounts last saw.

// takesAccounts reports whether people can link accounts for an app that was just found and rejects calls without
// credentials. If so, the app uses linked accounts from now on.
func (a *app) takesAccounts(ctx context.Context, found *source.Candidate, refused *instance.Failure) bool {
	remote := *found.Record.Remote
	if refused.Status != http.StatusUnauthorized || remote.Auth.Type != "none" || a.manager.o.Accounts == nil {
		return false
	}
	remote.Auth.Type = core.AuthUser
	for name := range remote.Headers {
		if remote.Auth.Replaces(name) { // the app rejects these credentials
			return false
		}
	}
	if !a.manager.o.Accounts.Discover(ctx, remote, refused.Challenge) {
		return false
	}
	found.Record.Remote = &remote
	a.transition(sameState, func(v *view) { v.record.Remote = &remote })
	return true
}

// addPublished adds the published lists to spec. The shared instance of an app with linked accounts shows them.
func (a *app) addPublished(ctx context.Context, spec *instance.Spec) error {
	if a.manager.o.Accounts == nil {
		return errors.New("it uses linked accounts, which this server does not support")
	}
	lists, err := a.manager.o.Accounts.Published(ctx, a.key.Workspace, a.key.Name)
	if err == nil && len(lists.Lists) == 0 && a.usesOwnAccounts() {
		lists = a.listWithoutLogin(ctx, *spec)
	}
	if err == nil {
		err = a.loadListings(ctx, "")
	}
	spec.Published = lists
	return err
}

// listWithoutLogin returns the lists that the app shows to everybody, or none if listing requires a login.
func (a *app) listWithoutLogin(ctx context.Context, spec instance.Spec) (lists core.AppLists) {
	limit, cancel := context.WithTimeout(ctx, anonymousTimeout)
	defer cancel()
	spec.Anonymous, spec.OnNotification = true, nil
	in, err := a.startEither(limit, spec)
	if err != nil {
		return lists
	}
	if lists, err = a.readLists(limit, in); err != nil {
		lists = core.AppLists{}
	}
	if err := in.Shutdown(0); err != nil {
		a.log.Warn("could not close a connection that uses no account", "error", err)
	}
	return lists
}

// publishLists reads the lists of an account's instance in the background. If the account is the one that determines
// the published lists, it publishes the app with them. It reads the lists again when the app announces changes, until
// the instance ends.
func (a *app) publishLists(in instance.Instance, account string) {
	a.manager.background(func(ctx context.Context) {
		publish := func([]core.Kind) {
			if err := a.publishOnce(ctx, in, account); err != nil && ctx.Err() == nil && !isClosed(in.Done()) {
				a.log.Warn("could not read an app's lists with an account; keeping the old ones", "account", account, "error", err)
			}
		}
		publish(nil)
		a.followLists(ctx, in, publish)
	})
}

func (a *app) publishOnce(ctx context.Context, in instance.Instance, account string) error {
	limit, cancel := context.WithTimeout(ctx, a.manager.o.StartTimeout)
	defer cancel()
	lists, err := a.readLists(limit, in)
	if err != nil {
		return err
	}
	published, err := a.manager.o.Accounts.Publish(limit, account, lists)
	if published {
		a.showPublished(lists)
	}
	if err == nil && a.usesOwnAccounts() {
		err = a.showListing(limit, account, lists, announcesTools(in))
	}
	return err
}

// readLists reads the lists of an instance and checks that they can be used.
func (a *app) readLists(ctx context.Context, in instance.Instance) (core.AppLists, error) {
	r := newRecorder(in, "")
	_, err := a.reader(in).ReadAll(ctx, r)
	info := in.Info()
	return core.AppLists{Version: info.Version, Instructions: info.Instructions, Stateless: info.Stateless, Lists: r.lists}, err
}

func (a *app) showPublished(lists core.AppLists) {
	if p, ok := a.now.Load().instance.(*instance.Published); ok && len(lists.Lists) > 0 {
		p.Publish(lists)
	}
}

// AuthOf returns how the server authenticates to a remote app. It returns the zero value for a local app, and
// core.CodeNotFound if there is no app with this name.
func (m *Manager) AuthOf(workspace, app string) (core.RemoteAuth, error) {
	a, err := m.find(workspace, app)
	if err != nil {
		return core.RemoteAuth{}, err
	}
	if remote := a.now.Load().record.Remote; remote != nil {
		return remote.Auth, nil
	}
	return core.RemoteAuth{}, nil
}

// UsesAccounts reports whether people can link accounts for any app in a workspace.
func (m *Manager) UsesAccounts(workspace string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, a := range m.apps[workspace] {
		if r := a.now.Load().record.Remote; r != nil && r.Auth.LinksAccounts() {
			return true
		}
	}
	return false
}

// ExchangeApps returns the apps in a workspace with core.AuthExchange that show no tools because they are not published
// yet.
func (m *Manager) ExchangeApps(workspace string) (names []string) {
	for _, a := range m.in(workspace) {
		v := a.now.Load()
		if r := v.record.Remote; r != nil && r.Auth.Type == core.AuthExchange && len(v.offer.Tools) == 0 {
			names = append(names, a.key.Name)
		}
	}
	return names
}

// AccountLinked must be called after an account is linked, before anyone is notified. It closes the account's existing
// connections and opens a new one in the background. If the app is not published yet, it is published with the lists
// from that connection.
func (m *Manager) AccountLinked(account core.Account) {
	a, err := m.find(account.Workspace, account.App)
	if err != nil {
		return
	}
	m.broker.EndAccount(account.ID) // close them now, so that calls that wait for this login can keep the new connection
	m.background(func(ctx context.Context) {
		limit, cancel := context.WithTimeout(ctx, m.o.StartTimeout)
		defer cancel()
		if err := a.dialog.Connect(limit, account.ID); err != nil && ctx.Err() == nil {
			a.log.Warn("could not connect to an app with an account that was just linked", "account", account.ID, "reason", core.TextOf(err))
		}
	})
}

// AccountUnlinked closes an account's connections. Calls in flight that use it fail.
func (m *Manager) AccountUnlinked(account string) {
	m.broker.EndAccount(account)
	for _, a := range m.allApps() {
		a.forgetListing(account)
	}
}

// DefaultAccountChanged must be called after a person's default account for an app in a workspace has changed. It
// announces the lists: what the default account sees takes precedence over what the person's other accounts see.
func (m *Manager) DefaultAccountChanged(workspace string) { m.catalog.Announce(workspace) }

// RefreshPublished shows, in the background, the lists that peer servers have published or read with an account.
// workspace and account limit what is refreshed; "" means all.
func (m *Manager) RefreshPublished(workspace, account string) {
	m.background(func(ctx context.Context) {
		for _, a := range m.allApps() {
			remote := a.now.Load().record.Remote
			if workspace != "" && a.key.Workspace != workspace || remote == nil || !remote.Auth.UsesAccounts() {
				continue
			}
			lists, err := m.o.Accounts.Published(ctx, a.key.Workspace, a.key.Name)
			if err != nil {
				a.log.Warn("could not read an app's published lists; keeping the old ones", "error", err)
				continue
			}
			a.showPublished(lists)
			if err := a.loadListings(ctx, account); err != nil {
				a.log.Warn("could not read the lists that an app sent to accounts; keeping the old ones", "error", err)
			}
		}
	})
}
