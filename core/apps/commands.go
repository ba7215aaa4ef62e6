package apps

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// The writes of a command are completed even if its caller gives up, because a partial write would leave the app in
// neither the old nor the new state.

// endTimeout is how long a command waits, beyond the grace period, for processes to exit.
const endTimeout = 20 * time.Second

// Start starts an app that is stopped or dead, with the full number of restart attempts. It returns when the app is
// running. For an app that is already starting or restarting it waits, and for a running app it does nothing. If the
// app does not start, it keeps its state and shows the reason.
//
// Errors: core.CodeNotFound; core.CodeConflict if another command stopped the app in the meantime; core.CodeStartFailed
// with the reason.
func (m *Manager) Start(ctx context.Context, workspace, name string) (core.App, error) {
	return m.command(ctx, interact.AppRef{Workspace: workspace, Name: name}, core.CodeStartFailed, "started", func(ctx context.Context, a *app) error {
		ctx, done := a.interruptible(ctx)
		defer done()
		switch a.now.Load().state {
		case core.StateRunning:
			return a.recordForPeers(ctx)
		case core.StateStarting, core.StateCrashed:
			return a.awaitSupervisor(ctx)
		default:
			return a.startStopped(ctx)
		}
	})
}

// Stop ends an app and all its processes. The app remains installed, and does not start again when the server
// restarts. Calls in flight have Options.Grace to finish. Stopping a stopped app does nothing.
//
// Errors: core.CodeNotFound; core.CodeStopFailed if the stop could not be recorded (the app keeps running) or if a
// process survived.
func (m *Manager) Stop(ctx context.Context, workspace, name string) (core.App, error) {
	return m.command(ctx, interact.AppRef{Workspace: workspace, Name: name}, core.CodeStopFailed, "stopped", func(ctx context.Context, a *app) error {
		if a.now.Load().record.Running {
			if err := a.recordRunning(ctx, false); err != nil {
				return err
			}
		}
		wasStopped := a.now.Load().state == core.StateStopped
		if err := a.stopForCommand(ctx); err != nil {
			return err
		}
		if !wasStopped {
			a.publish(core.EventBundleStopped, core.BundleStopped{Name: name})
		}
		return nil
	})
}

// Uninstall removes an app and ends its processes. Its data remains in dataPath. Restore undoes it for
// Options.UndoFor. After that, the files that the server unpacked or fetched for the app are removed, and its
// accounts are unlinked.
//
// Errors: core.CodeNotFound; core.CodeProtected; core.CodeUninstallFailed if the removal could not be recorded (the app
// is unchanged).
func (m *Manager) Uninstall(ctx context.Context, workspace, name string) (dataPath string, err error) {
	k := interact.AppRef{Workspace: workspace, Name: name}
	if err := m.syncRecord(ctx, k); err != nil {
		return "", commandError(core.CodeUninstallFailed, err, name, "uninstalled")
	}
	if _, err := m.find(workspace, name); err == nil && m.isProtected(k) {
		return "", core.Errorf(core.CodeProtected, "app %s is protected by apps.%s.protected in the configuration", name, name)
	}
	layout := source.LayoutOf(m.o.Home, workspace)
	_, err = m.command(ctx, k, core.CodeUninstallFailed, "uninstalled", func(ctx context.Context, a *app) error {
		record, until := a.now.Load().record, time.Now().Add(m.o.UndoFor)
		if err := m.o.Records.Uninstall(context.WithoutCancel(ctx), workspace, name, record.ID, until); err != nil {
			return err
		}
		if err := a.stopForCommand(ctx); err != nil {
			a.log.Error("some processes of an uninstalled app are still running", "error", err)
		}
		m.removeApp(a)
		m.setAside(record, until)
		a.publish(core.EventBundleUninstalled, core.BundleUninstalled{Name: name})
		return nil
	})
	if err != nil {
		return "", err
	}
	return layout.AppDir(name), nil
}

// command runs do while it holds the app's turn. Errors get the given code; done is the participle for the error
// message ("app x was not <done>"). Every command except a start cancels a start that another command is waiting for.
func (m *Manager) command(ctx context.Context, k interact.AppRef, code core.Code, done string, do func(context.Context, *app) error) (core.App, error) {
	request := ctx
	ctx, finish, err := m.beginWork(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer finish()
	if err := m.syncRecord(ctx, k); err != nil {
		return core.App{}, commandError(code, err, k.Name, done)
	}
	a, err := m.find(k.Workspace, k.Name)
	if err != nil {
		return core.App{}, err
	}
	if code != core.CodeStartFailed {
		a.cancelStart()
	}
	if err := a.acquireTurn(ctx); err != nil {
		return core.App{}, commandError(code, err, k.Name, done)
	}
	defer a.releaseTurn()
	if err := do(ctx, a); err != nil {
		if invalid, ok := errors.AsType[invalidCommand](err); ok {
			return core.App{}, invalid.error
		}
		if errors.Is(err, context.Canceled) && request.Err() == nil && m.life.Err() == nil {
			return core.App{}, core.Wrap(core.CodeConflict, err, "app "+k.Name+" was not "+done+": another command stopped, replaced or uninstalled it in the meantime")
		}
		return core.App{}, commandError(code, err, k.Name, done)
	}
	return a.now.Load().app(), nil
}

// invalidCommand is an error that a command returns unchanged, because it is about the request and not about what the
// command did.
type invalidCommand struct{ error }

// awaitSupervisor waits until the supervisor has started an app that is starting or crashed. For a process, the result
// is running or dead. A remote app is never dead, so it is tried immediately. If that attempt fails as well, its error
// is returned and the supervisor keeps trying.
func (a *app) awaitSupervisor(ctx context.Context) error {
	before := a.now.Load()
	if before.record.Remote == nil {
		_, err := a.ready(ctx, nil)
		return err
	}
	again := time.NewTicker(callRetryPause) // the supervisor ignores a retry request that comes right after an attempt
	defer again.Stop()
	for {
		v := a.now.Load()
		switch {
		case v.state != core.StateCrashed && v.state != core.StateStarting:
			_, err := a.ready(ctx, nil)
			return err
		case v.restarts > before.restarts && v.failure != before.failure:
			return v.failure
		case v.state == core.StateCrashed:
			a.wakeRetry()
		}
		select {
		case <-v.replaced:
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startStopped starts a stopped or dead app and its supervisor. The caller must hold the turn.
func (a *app) startStopped(ctx context.Context) error {
	before := a.now.Load()
	a.transition(core.StateStarting, nil)
	in, lists, err := a.launch(ctx)
	if err != nil {
		a.transition(before.state, func(v *view) {
			if ctx.Err() == nil {
				v.failure = failureOf(err)
			}
		})
		return err
	}
	if !before.record.Running || a.manager.o.Cluster != nil {
		if err := a.recordRunning(ctx, true); err != nil {
			a.transition(before.state, nil)
			return errors.Join(err, in.Shutdown(a.manager.o.Grace))
		}
	}
	a.markRunning(in, lists)
	a.startSupervisor(in)
	a.publish(core.EventBundleStarted, core.BundleStarted{Name: a.key.Name})
	return nil
}

// changeRecord changes the app's record, even if ctx ends. It returns core.CodeNotFound if another app has replaced it. The
// caller must hold the turn.
func (a *app) changeRecord(ctx context.Context, change func(*core.Installation) error) (core.Installation, error) {
	return a.manager.o.Records.ChangeInstallation(context.WithoutCancel(ctx), a.key.Workspace, a.key.Name, func(in *core.Installation) error {
		if in.ID != a.now.Load().record.ID {
			return notFound(a.key.Name)
		}
		return change(in)
	})
}

// recordRunning records whether the app should be running, including after a restart and on other servers.
func (a *app) recordRunning(ctx context.Context, running bool) error {
	_, err := a.changeRecord(ctx, func(in *core.Installation) error {
		in.Running = running
		return nil
	})
	if err == nil {
		a.transition(sameState, func(v *view) { v.record.Running = running })
	}
	return err
}

// recordForPeers makes the other servers start the app as well, in case it is dead there.
func (a *app) recordForPeers(ctx context.Context) error {
	if a.manager.o.Cluster == nil {
		return nil
	}
	return a.recordRunning(ctx, true)
}

// stopForCommand is stopSupervisor for a command that is already recorded, so a client that gives up can no longer
// cancel it.
func (a *app) stopForCommand(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.manager.o.Grace+endTimeout,
		errors.New("its processes are taking too long to exit"))
	defer cancel()
	return a.stopSupervisor(ctx)
}

// stopToStartAgain is stopForCommand for a command that restarts the app right away if it should be running. Calls
// wait for the restart, and the app's tools remain listed.
func (a *app) stopToStartAgain(ctx context.Context) error {
	a.transition(sameState, func(v *view) { v.awaited = true })
	err := a.stopForCommand(ctx)
	if err != nil {
		a.transition(sameState, func(v *view) { v.awaited = false })
	}
	return err
}

func (m *Manager) isProtected(k interact.AppRef) bool {
	return k.Workspace == core.DefaultWorkspaceID && m.setup.Load().declared[k.Name].Protected
}

// commandError returns err with the command's code and a message that says what was not done. It returns
// core.CodeNotFound unchanged.
func commandError(code core.Code, err error, name, done string) error {
	switch core.CodeOf(err) {
	case core.CodeNotFound:
		return err
	case core.CodeInstallFailed:
		if code == core.CodeInstallFailed {
			return err
		}
	default:
	}
	if errors.Is(err, context.Canceled) {
		return core.Wrap(code, err, "app "+name+" was not "+done+": the request was cancelled, or the server is shutting down")
	}
	return core.Wrap(code, err, "app "+name+" was not "+done+": "+core.TextOf(err))
}
