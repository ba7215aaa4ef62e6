package apps

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// UndoFor is the default of Options.UndoFor.
const UndoFor = time.Minute

// An uninstalled app is set aside until it can no longer be restored: it is not listed and cannot be called, but its
// record, its accounts and approvals, and its files on every server are kept.

// Restore undoes Uninstall. The app gets its settings, permissions, accounts and files back, and starts again if it was
// running. If it does not start, the supervisor keeps trying.
//
// Errors: core.CodeNotFound if it is too late; core.CodeConflict if an app of this name is installed.
func (m *Manager) Restore(ctx context.Context, workspace, name string) (core.App, error) {
	k := interact.AppRef{Workspace: workspace, Name: name}
	ctx, done, err := m.beginWork(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer done()
	if err := m.syncRecord(ctx, k); err != nil {
		return core.App{}, err
	}
	free, err := m.reserveName(k)
	if err != nil {
		return core.App{}, core.Errorf(core.CodeConflict, "app %s is installed or is being installed: there is nothing to restore", name)
	}
	defer free()
	r, err := m.o.Records.RestoreInstallation(context.WithoutCancel(ctx), workspace, name)
	if core.CodeOf(err) == core.CodeNotFound {
		return core.App{}, core.Errorf(core.CodeNotFound,
			"app %.100q cannot be restored: it was not uninstalled in the last %v, or another app has been installed under its name", name, m.o.UndoFor)
	}
	if err != nil {
		return core.App{}, err
	}
	a := m.addResumed(r)
	a.log.Info("app restored")
	if a.now.Load().state == core.StateStarting {
		limit, cancel := context.WithTimeout(ctx, m.o.RestartWait)
		defer cancel()
		_, _ = a.ready(limit, nil) // if the app does not start, its state shows that
	}
	a.publishInstalled(a.now.Load())
	return m.describe(a), nil
}

// setAside records that an app was uninstalled and, once the app can no longer be restored, deletes what it leaves
// behind. Open calls setAside for the apps that were set aside before the server started.
func (m *Manager) setAside(r core.Installation, until time.Time) {
	k := interact.AppRef{Workspace: r.Workspace, Name: r.Name}
	m.mu.Lock()
	m.aside[k] = r.ID
	m.mu.Unlock()
	m.background(func(ctx context.Context) {
		pause := time.Until(until)
		for wait(ctx, pause) {
			err := m.purge(ctx, k, r.ID)
			if err == nil {
				return
			}
			m.log.Warn("could not delete an uninstalled app; retrying", "workspace", k.Workspace, "app", k.Name, "error", err)
			pause = retryPause
		}
	})
}

// purge deletes an app that was set aside, unless it was restored or another app has its name.
func (m *Manager) purge(ctx context.Context, k interact.AppRef, id string) error {
	free, err := m.awaitName(ctx, k)
	if err != nil {
		return nil // an app has the name
	}
	defer free()
	if aside, ok := m.setAsideAs(k); !ok || aside != id {
		return nil
	}
	if err := m.o.Records.PurgeUninstalled(ctx, "", ""); err != nil {
		return err
	}
	m.removeFiles(k)
	return nil
}

// endUndo deletes the app that was uninstalled under a name, so that another app can use the name. The caller must
// have reserved it.
func (m *Manager) endUndo(ctx context.Context, k interact.AppRef) error {
	if err := m.o.Records.PurgeUninstalled(ctx, k.Workspace, k.Name); err != nil {
		return err
	}
	if _, ok := m.setAsideAs(k); ok {
		m.removeFiles(k)
	}
	return nil
}

// setAsideAs returns the ID of the app that was set aside under a name. ok is false if there is none.
func (m *Manager) setAsideAs(k interact.AppRef) (id string, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	id, ok = m.aside[k]
	return id, ok
}

// removeFiles removes the files of an app that was set aside, except for its data.
func (m *Manager) removeFiles(k interact.AppRef) {
	layout := source.LayoutOf(m.o.Home, k.Workspace)
	m.files.Remove(layout.BundlesDir(k.Name))
	m.files.Remove(layout.LayersDir(k.Name))
	m.mu.Lock()
	delete(m.aside, k)
	m.mu.Unlock()
}
