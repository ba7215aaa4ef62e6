package apps

import (
	"context"
	"errors"
	"net/http"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// An app that is called with linked accounts has no connection that is everybody's. Its shared instance shows the lists that
// are published; each account in use has an instance in the session pool.

// takesAccounts reports whether people can link accounts at an app that was just found and refuses calls without
// credentials. It is called with those from then on.
func (a *app) takesAccounts(ctx context.Context, found *source.Candidate, refused *instance.Failure) bool {
	remote := *found.Record.Remote
	if refused.Status != http.StatusUnauthorized || remote.Auth.Type != "none" || a.manager.o.Accounts == nil || !a.manager.o.Accounts.Discover(ctx, remote, refused.Challenge) {
		return false
	}
	remote.Auth.Type = core.AuthUser
	found.Record.Remote = &remote
	a.transition(sameState, func(v *view) { v.record.Remote = &remote })
	return true
}

// addPublished adds what the shared instance of an app that is called with accounts shows.
func (a *app) addPublished(ctx context.Context, spec *instance.Spec) error {
	if a.manager.o.Accounts == nil {
		return errors.New("it is called with linked accounts, and this server has none")
	}
	lists, err := a.manager.o.Accounts.Published(ctx, a.key.Workspace, a.key.Name)
	spec.Published = lists
	return err
}

// publishLists reads the lists of an instance of an account, in the background, and publishes the app with them if the
// account is the one to do so. It reads them again when the app announces changes, until the instance ends.
func (a *app) publishLists(in instance.Instance, account string) {
	ctx, done, err := a.manager.beginWork(context.Background())
	if err != nil { // the server is shutting down
		return
	}
	publish := func([]core.Kind) {
		if err := a.publishOnce(ctx, in, account); err != nil && ctx.Err() == nil && !isClosed(in.Done()) {
			a.log.Warn("lists of an app could not be read with an account; the old ones stay", "account", account, "error", err)
		}
	}
	go func() {
		defer done()
		publish(nil)
		a.followLists(ctx, in, publish)
	}()
}

func (a *app) publishOnce(ctx context.Context, in instance.Instance, account string) error {
	limit, cancel := context.WithTimeout(ctx, a.manager.o.StartTimeout)
	defer cancel()
	r := newRecorder(in)
	if _, err := a.reader(in).ReadAll(limit, r); err != nil { // which checks them
		return err
	}
	info := in.Info()
	lists := core.AppLists{Version: info.Version, Instructions: info.Instructions, Stateless: info.Stateless, Lists: r.lists}
	published, err := a.manager.o.Accounts.Publish(limit, account, lists)
	if published {
		a.showPublished(lists)
	}
	return err
}

func (a *app) showPublished(lists core.AppLists) {
	if p, ok := a.now.Load().instance.(*instance.Published); ok {
		p.Publish(lists)
	}
}

// AuthOf returns how a remote app is authenticated to; core.CodeNotFound without such an app. That of an app that is not
// remote is zero.
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

// UsesAccounts reports whether an app of a workspace is called with linked accounts.
func (m *Manager) UsesAccounts(workspace string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, a := range m.apps[workspace] {
		if r := a.now.Load().record.Remote; r != nil && r.Auth.UsesAccounts() {
			return true
		}
	}
	return false
}

// AccountLinked is called when an account was linked, before anybody learns of it: its connections end, and one is made anew, in
// the background. The app is published with its lists if it has none.
func (m *Manager) AccountLinked(account core.Account) {
	a, err := m.find(account.Workspace, account.App)
	if err != nil {
		return
	}
	ctx, done, err := m.beginWork(context.Background())
	if err != nil { // the server is shutting down
		return
	}
	m.broker.EndAccount(account.ID) // not later: a call that waits for this login must keep its connection
	go func() {
		defer done()
		limit, cancel := context.WithTimeout(ctx, m.o.StartTimeout)
		defer cancel()
		if err := a.dialog.Connect(limit, account.ID); err != nil && ctx.Err() == nil {
			a.log.Warn("app could not be reached with an account that was just linked", "account", account.ID, "reason", core.TextOf(err))
		}
	}()
}

// AccountUnlinked ends the connections of an account; calls in flight with it fail.
func (m *Manager) AccountUnlinked(account string) { m.broker.EndAccount(account) }

// RefreshPublished shows what peer servers have published, in the background: of one workspace, or of all for "".
func (m *Manager) RefreshPublished(workspace string) {
	ctx, done, err := m.beginWork(context.Background())
	if err != nil { // the server is shutting down
		return
	}
	go func() {
		defer done()
		for _, a := range m.allApps() {
			remote := a.now.Load().record.Remote
			if workspace != "" && a.key.Workspace != workspace || remote == nil || !remote.Auth.UsesAccounts() {
				continue
			}
			lists, err := m.o.Accounts.Published(ctx, a.key.Workspace, a.key.Name)
			if err != nil {
				a.log.Warn("published lists of an app could not be read; the old ones stay", "error", err)
				continue
			}
			a.showPublished(lists)
		}
	}()
}
