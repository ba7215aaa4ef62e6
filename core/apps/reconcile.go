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

// The records hold for every server of a cluster: an app that one server installs, starts, stops,
// replaces or uninstalls is installed, started, stopped, replaced or uninstalled on all. A server that
// reconciles an app publishes no events: they were published where the command was given. Whether an
// app is crashed or dead concerns each server alone.

// retryPause is how long to wait before something that failed is tried again.
const retryPause = time.Second

// reconciler keeps the apps equal to their records.
type reconciler struct {
	mu   sync.Mutex
	busy map[interact.AppKey]*reconciliation
}

// reconciliation is the work on one app.
type reconciliation struct {
	again     bool // there was a change since the record was read
	announced bool // of this very app
	done      chan struct{}
}

// followChanges reconciles apps at each change by another server, until the Manager closes.
func (m *Manager) followChanges(ctx context.Context, changes <-chan core.Change) {
	for c := range changes {
		if interact.ChangesCapabilities(c) {
			m.broker.LoadCapabilities(ctx)
		}
		switch c.Kind {
		case core.ChangeApp:
			m.reconcile(interact.AppKey{Workspace: c.Workspace, Name: c.Name}, true)
		case core.ChangeAll:
			m.reconcileAll(ctx)
		default: // does not concern apps
		}
	}
}

// reconcileAll reconciles every app, after changes may have been missed.
func (m *Manager) reconcileAll(ctx context.Context) {
	records, err := m.o.Records.Installations(ctx)
	for warned := false; err != nil; warned = true {
		if !warned {
			m.log.Warn("records could not be read; retrying until they can", "error", err)
		}
		if !wait(ctx, retryPause) {
			return
		}
		records, err = m.o.Records.Installations(ctx)
	}
	keys := map[interact.AppKey]struct{}{}
	for _, r := range records {
		keys[interact.AppKey{Workspace: r.Workspace, Name: r.Name}] = struct{}{}
	}
	for _, a := range m.allApps() {
		keys[a.key] = struct{}{}
	}
	for k := range keys {
		m.reconcile(k, false)
	}
}

// reconcile makes an app equal to its record in the background, one change after the other. announced
// says that the change was of this very app. The channel is closed when that is done.
func (m *Manager) reconcile(k interact.AppKey, announced bool) (done <-chan struct{}) {
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

// syncRecord makes sure, before a command, that the app is known here if and only if it is recorded: a
// client that did something through another server need not wait for this one.
func (m *Manager) syncRecord(ctx context.Context, k interact.AppKey) error {
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

// reconcileApp makes an app equal to its record, and retries until that worked.
func (m *Manager) reconcileApp(ctx context.Context, k interact.AppKey, announced bool) {
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
			m.log.Warn("app could not be made equal to its record; retrying until it can",
				"workspace", k.Workspace, "app", k.Name, "error", err)
		}
		if !wait(ctx, retryPause) {
			return
		}
	}
}

// addRecorded adds an app that another server has installed, if it has.
func (m *Manager) addRecorded(ctx context.Context, k interact.AppKey) error {
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
	r.Dir = m.files.CurrentDir(r)
	a := m.newApp(r)
	a.turn <- struct{}{}
	defer a.releaseTurn()
	m.addApp(a)
	a.log.Info("app installed by another server")
	a.resume()
	return nil
}

// awaitName reserves a name once no install in progress has it. The error says when an app has it.
func (m *Manager) awaitName(ctx context.Context, k interact.AppKey) (free func(), err error) {
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

// applyRecord makes an app equal to its record.
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
		if core.CodeOf(err) == core.CodeNotFound { // it was removed here meanwhile, and may be back
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

// removeUninstalled removes an app that another server has uninstalled. The caller holds the turn.
func (a *app) removeUninstalled(ctx context.Context) {
	a.log.Info("app uninstalled by another server")
	if err := a.stopForCommand(ctx); err != nil {
		a.log.Error("not all processes of an uninstalled app have ended", "error", err)
	}
	a.manager.files.Remove(a.layout().BundlesDir(a.key.Name))
	a.manager.files.Remove(a.layout().LayersDir(a.key.Name))
	a.manager.removeApp(a)
}

// replaceRecord makes an app another one, or the same with other values. The caller holds the turn.
func (a *app) replaceRecord(ctx context.Context, r core.Installation) {
	a.log.Info("app replaced by another server", "version", r.Version)
	a.transition(sameState, func(v *view) { v.awaited = r.Running })
	if err := a.stopForCommand(ctx); err != nil {
		a.log.Error("not all processes of a replaced app have ended", "error", err)
	}
	a.setRecord(r)
	a.resume()
}

// sameInstallation reports whether two records are of the same app, to be run in the same way. The
// manifest is part of the files.
func sameInstallation(a, b core.Installation) bool {
	return a.ID == b.ID && a.Source == b.Source && slices.Equal(a.Permissions, b.Permissions) && a.Dir == b.Dir && a.Files == b.Files &&
		maps.Equal(a.Env, b.Env) && sameRemote(a.Remote, b.Remote)
}

// answerPeer answers a request of another server: to resume a call that is suspended here.
func (m *Manager) answerPeer(ctx context.Context, request json.RawMessage) json.RawMessage {
	return interact.AnswerPeer(ctx, request, func(k interact.AppKey) (*interact.Dialog, error) {
		a, err := m.find(k.Workspace, k.Name)
		if err != nil {
			return nil, err
		}
		return a.dialog, nil
	})
}
