package apps

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
)

// The records apply to every server of a cluster: when one server installs, starts, stops, replaces or uninstalls an
// app, all others do the same. A server that reconciles an app publishes no events, because the server that ran the
// command has published them. Whether an app is crashed or dead is local to each server.

// retryPause is how long to wait before retrying something that failed.
const retryPause = time.Second

// reconciler keeps the apps in line with their records.
type reconciler struct {
	mu   sync.Mutex
	busy map[interact.AppRef]*reconciliation
}

// reconciliation is the work on one app.
type reconciliation struct {
	again     bool // there was a change since the record was last read
	announced bool // the change was announced for this app
	done      chan struct{}
}

// followChanges reconciles apps after each change by another server, until the Manager closes.
func (m *Manager) followChanges(ctx context.Context, changes <-chan core.Change) {
	for c := range changes {
		if interact.ChangesCapabilities(c) {
			m.broker.LoadCapabilities(ctx)
		}
		switch c.Kind {
		case core.ChangeApp:
			m.reconcile(interact.AppRef{Workspace: c.Workspace, Name: c.Name}, true)
		case core.ChangeAll:
			m.reconcileAll(ctx)
		default: // not about apps
		}
	}
}

// reconcileAll reconciles every app. It is called when changes may have been missed.
func (m *Manager) reconcileAll(ctx context.Context) {
	records, err := m.o.Records.Installations(ctx)
	for warned := false; err != nil; warned = true {
		if !warned {
			m.log.Warn("could not read the records; retrying", "error", err)
		}
		if !wait(ctx, retryPause) {
			return
		}
		records, err = m.o.Records.Installations(ctx)
	}
	keys := map[interact.AppRef]struct{}{}
	for _, r := range records {
		keys[interact.AppRef{Workspace: r.Workspace, Name: r.Name}] = struct{}{}
	}
	for _, a := range m.allApps() {
		keys[a.key] = struct{}{}
	}
	for k := range keys {
		m.reconcile(k, false)
	}
}

// reconcile makes an app match its record in the background, one change at a time. announced means that the change was
// announced for this app. The channel is closed when the work is done.
func (m *Manager) reconcile(k interact.AppRef, announced bool) (done <-chan struct{}) {
	r := &m.reconciler
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.busy[k]; w != nil {
		w.again, w.announced = true, w.announced || announced
		return w.done
	}
	w := &reconciliation{again: true, announced: announced, done: make(chan struct{})}
	ctx, finish, err := m.beginWork(context.Background())
	if err != nil { // the server is shutting down
		close(w.done)
		return w.done
	}
	r.busy[k] = w
	go func() {
		defer finish()
		defer close(w.done)
		for {
			r.mu.Lock()
			if !w.again {
				delete(r.busy, k)
				r.mu.Unlock()
				return
			}
			w.again, announced, w.announced = false, w.announced, false
			r.mu.Unlock()
			m.reconcileApp(ctx, k, announced)
		}
	}()
	return w.done
}

// syncRecord makes sure, before a command, that this server knows the app if and only if it is recorded. This way, a
// client that has just changed something through another server does not have to wait until this server has caught up.
func (m *Manager) syncRecord(ctx context.Context, k interact.AppRef) error {
	if m.o.Cluster == nil {
		return nil
	}
	r, err := m.o.Records.Installation(ctx, k.Workspace, k.Name)
	gone := core.CodeOf(err) == core.CodeNotFound
	if err != nil && !gone {
		return err
	}
	a, missing := m.find(k.Workspace, k.Name)
	known := missing == nil
	if gone && !known || !gone && known && a.now.Load().record.ID == r.ID {
		return nil
	}
	select {
	case <-m.reconcile(k, false):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reconcileApp makes an app match its record, and retries until that succeeds.
func (m *Manager) reconcileApp(ctx context.Context, k interact.AppRef, announced bool) {
	for warned := false; ; warned = true {
		var err error
		if a, missing := m.find(k.Workspace, k.Name); missing != nil {
			err = m.addRecorded(ctx, k)
		} else {
			err = a.applyRecord(ctx, announced)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if !warned {
			m.log.Warn("could not bring an app in line with its record; retrying",
				"workspace", k.Workspace, "app", k.Name, "error", err)
		}
		if !wait(ctx, retryPause) {
			return
		}
	}
}

// addRecorded adds an app that another server has installed. It does nothing if there is no record.
func (m *Manager) addRecorded(ctx context.Context, k interact.AppRef) error {
	free, err := m.awaitName(ctx, k)
	if err != nil {
		return err
	}
	defer free()
	r, err := m.o.Records.Installation(ctx, k.Workspace, k.Name)
	switch {
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	case err != nil:
		return err
	}
	m.addResumed(r).log.Info("app installed by another server")
	return nil
}

// addResumed adds an app that is already recorded, and resumes it.
func (m *Manager) addResumed(r core.Installation) *app {
	r.Dir = m.files.CurrentDir(r)
	a := m.newApp(r)
	a.turn <- struct{}{}
	defer a.releaseTurn()
	m.addApp(a)
	a.resume()
	return a
}

// awaitName waits until no install in progress has the name, and reserves it. It returns an error if an app has the
// name.
func (m *Manager) awaitName(ctx context.Context, k interact.AppRef) (free func(), err error) {
	for {
		m.mu.RLock()
		over := m.reserved[k]
		m.mu.RUnlock()
		if free, err = m.reserveName(k); err == nil || over == nil {
			return free, err
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// applyRecord makes an app match its record.
func (a *app) applyRecord(ctx context.Context, announced bool) error {
	read := func() (r core.Installation, gone bool, err error) {
		r, err = a.manager.o.Records.Installation(ctx, a.key.Workspace, a.key.Name)
		if core.CodeOf(err) == core.CodeNotFound {
			return r, true, nil
		}
		r.Dir = a.manager.files.CurrentDir(r)
		return r, false, err
	}
	r, gone, err := read()
	if err != nil {
		return err
	}
	if gone || !r.Running || !sameInstallation(r, a.now.Load().record) {
		a.cancelStart()
	}
	if err := a.acquireTurn(ctx); err != nil {
		if core.CodeOf(err) == core.CodeNotFound { // the app was removed here in the meantime, and may have been installed again
			a.manager.reconcile(a.key, announced)
			return nil
		}
		return err
	}
	defer a.releaseTurn()
	if r, gone, err = read(); err != nil {
		return err
	}
	switch now := a.now.Load(); {
	case gone:
		a.removeUninstalled(ctx)
	case !sameInstallation(r, now.record):
		a.replaceRecord(ctx, r)
	case !r.Running:
		a.transition(sameState, func(v *view) { v.record.Running = false })
		return a.stopForCommand(ctx)
	case now.state == core.StateStopped, now.state == core.StateDead && announced:
		a.transition(sameState, func(v *view) { v.record.Running = true })
		a.resume()
	}
	return nil
}

// removeUninstalled removes an app that another server has uninstalled. The caller must hold the turn.
func (a *app) removeUninstalled(ctx context.Context) {
	a.log.Info("app uninstalled by another server")
	if err := a.stopForCommand(ctx); err != nil {
		a.log.Error("some processes of an uninstalled app are still running", "error", err)
	}
	a.manager.removeApp(a)
	a.manager.setAside(a.now.Load().record, time.Now().Add(a.manager.o.UndoFor))
}

// replaceRecord replaces an app with another one, or with the same app with different values. The caller must hold the
// turn.
func (a *app) replaceRecord(ctx context.Context, r core.Installation) {
	a.log.Info("app replaced by another server", "version", r.Version)
	a.transition(sameState, func(v *view) { v.awaited = r.Running })
	if err := a.stopForCommand(ctx); err != nil {
		a.log.Error("some processes of a replaced app are still running", "error", err)
	}
	a.setRecord(r)
	a.resume()
}

// sameInstallation reports whether two records describe the same app, to be run in the same way. The manifest is not
// compared because it is part of the files.
func sameInstallation(a, b core.Installation) bool {
	return a.ID == b.ID && a.Source == b.Source && slices.Equal(a.Permissions, b.Permissions) && a.Dir == b.Dir && a.Files == b.Files &&
		maps.Equal(a.Env, b.Env) && sameRemote(a.Remote, b.Remote)
}

// answerPeer answers a request from another server to resume a call that is suspended here.
func (m *Manager) answerPeer(ctx context.Context, request json.RawMessage) json.RawMessage {
	return interact.AnswerPeer(ctx, request, func(k interact.AppRef) (*interact.Dialog, error) {
		a, err := m.find(k.Workspace, k.Name)
		if err != nil {
			return nil, err
		}
		return a.dialog, nil
	})
}
