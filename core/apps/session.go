package apps

import (
	"context"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/notify"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Key implements interact.App.
func (a *app) Key() interact.AppKey { return a.key }

// Bundle implements interact.App.
func (a *app) Bundle() interact.Bundle {
	record := a.now.Load().record
	return interact.Bundle{Name: record.BundleName, Version: record.Version}
}

// IsRunning implements interact.App.
func (a *app) IsRunning() bool { return a.now.Load().state == core.StateRunning }

// StartFor implements interact.App: it starts the app once more, for one session or for all stateless
// clients.
func (a *app) StartFor(ctx context.Context, s interact.Session) (interact.Instance, error) {
	release, err := a.manager.starts.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	spec := a.spec()
	spec.ClientCapabilities, spec.OnRequest = s.ClientCapabilities, s.OnRequest
	publish := func(n rpc.Notification) {
		a.manager.listeners.Publish(a.key.Workspace, notify.Notification{Server: a.key.Name, Session: s.ID, Apart: true, Notification: n})
	}
	if s.ID == "" {
		spec.Stateless, spec.OnListChanged = true, a.announceChange
		spec.OnNotification = func(n rpc.Notification) {
			if n.Method == "notifications/resources/updated" { // all others that belong to no request are of the older revisions
				publish(n)
			}
		}
	} else {
		spec.OnNotification = publish
		spec.OnListChanged = func(kind core.Kind) {
			publish(rpc.Notification{Method: "notifications/" + string(kind) + "/list_changed"})
		}
	}
	in, err := a.manager.start(ctx, spec)
	if err != nil {
		a.log.Warn("app could not be started once more", "stateless", spec.Stateless, "reason", core.TextOf(err))
		return nil, err
	}
	a.applyLogLevel(ctx, in)
	a.subscribeAgain(ctx, in, a.manager.subscriptions.OfSession(notify.SessionKey{App: a.key, Session: s.ID}))
	return in, nil
}

// announceChange announces that a list of an instance for stateless clients changed. The lists of the
// shared instance are read again: some apps announce to one connection what concerns all.
func (a *app) announceChange(kind core.Kind) {
	for _, list := range instance.AnnouncedLists(kind) {
		a.manager.catalog.Announce(a.key.Workspace, list)
	}
	if in := a.current(); in != nil {
		in.AddListChange(kind)
	}
}

// EndSession ends what apps keep for one session (interact.Client).
func (m *Manager) EndSession(session string) { m.broker.EndSession(session) }

// RootsChanged tells the instances that apps have for a session that its client's roots changed.
func (m *Manager) RootsChanged(ctx context.Context, session string) {
	m.broker.NotifyRootsChanged(ctx, session)
}
