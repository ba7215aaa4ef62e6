package apps

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// A command's writes go on when its caller leaves: half a write would be neither done nor undone.

// endPatience is how long, past the grace period, a command waits for processes to be gone.
const endPatience = 20 * time.Second

// Start starts an app that is stopped or dead, with all its restart attempts; one that runs
// already is left alone (spec part 3), and one that is being started or restarted is waited for.
// It returns when the app runs. An app that does not start stays what it was.
//
// Errors: core.CodeNotFound, core.CodeStartFailed saying why.
func (y *Manager) Start(ctx context.Context, workspace, name string) (core.App, error) {
	return y.command(ctx, key{workspace, name}, core.CodeStartFailed, "started", func(ctx context.Context, a *app) error {
		ctx, done := a.interruptible(ctx)
		defer done()
		switch a.now.Load().state {
		case core.StateRunning:
			return a.tell(ctx)
		case core.StateStarting, core.StateCrashed:
			_, err := a.ready(ctx, nil)
			return err
		default:
			return a.start(ctx)
		}
	})
}

// Stop ends an app and all its processes; it stays installed and stopped, also after a restart of
// the server. Calls in flight have Options.Grace to finish. Stopping a stopped app changes nothing.
//
// Errors: core.CodeNotFound; core.CodeStopFailed when that could not be recorded (the app runs
// on), or when a process survived.
func (y *Manager) Stop(ctx context.Context, workspace, name string) (core.App, error) {
	return y.command(ctx, key{workspace, name}, core.CodeStopFailed, "stopped", func(ctx context.Context, a *app) error {
		if a.now.Load().record.Running {
			if err := a.record(ctx, false); err != nil {
				return err
			}
		}
		return a.endFor(ctx)
	})
}

// Uninstall removes an app and ends its processes. Its data stays in dataPath; the files that the
// server unpacked or fetched for it go.
//
// Errors: core.CodeNotFound; core.CodeProtected; core.CodeUninstallFailed when the removal could
// not be recorded (the app stays as it was).
func (y *Manager) Uninstall(ctx context.Context, workspace, name string) (dataPath string, err error) {
	k := key{workspace, name}
	if err := y.abreast(ctx, k); err != nil {
		return "", failed(core.CodeUninstallFailed, err, name, "uninstalled")
	}
	if _, err := y.find(workspace, name); err == nil && y.protected(k) {
		return "", core.Errorf(core.CodeProtected, "app %s is protected by apps.%s.protected in the configuration", name, name)
	}
	_, err = y.command(ctx, k, core.CodeUninstallFailed, "uninstalled", func(ctx context.Context, a *app) error {
		if err := y.o.Records.DeleteInstallation(context.WithoutCancel(ctx), workspace, name, a.now.Load().record.ID); err != nil {
			return err
		}
		if err := a.endFor(ctx); err != nil {
			a.log.Error("An app is uninstalled, but not all of its processes have ended", "error", err)
		}
		y.clear(placesOf(y.o.Home, workspace).bundles(name))
		y.remove(a)
		a.publish(core.EventBundleUninstalled, core.BundleUninstalled{Name: name})
		return nil
	})
	if err != nil {
		return "", err
	}
	return placesOf(y.o.Home, workspace).app(name), nil
}

// command does something to an app while it holds the app's turn. What fails has the given code;
// done says what the app was then not. All commands but a start give up a start that is waited for.
func (y *Manager) command(ctx context.Context, k key, code core.Code, done string, do func(context.Context, *app) error) (core.App, error) {
	ctx, leave, err := y.enter(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer leave()
	if err := y.abreast(ctx, k); err != nil {
		return core.App{}, failed(code, err, k.name, done)
	}
	a, err := y.find(k.workspace, k.name)
	if err != nil {
		return core.App{}, err
	}
	if code != core.CodeStartFailed {
		a.giveUp()
	}
	if err := a.take(ctx); err != nil {
		return core.App{}, failed(code, err, k.name, done)
	}
	defer a.give()
	if err := do(ctx, a); err != nil {
		return core.App{}, failed(code, err, k.name, done)
	}
	return a.now.Load().app(), nil
}

// start launches a stopped or dead app and has it supervised. The caller holds the turn.
func (a *app) start(ctx context.Context) error {
	before := a.now.Load()
	a.become(core.StateStarting, nil)
	conn, offer, err := a.launch(ctx)
	if err != nil {
		a.become(before.state, nil)
		return err
	}
	if !before.record.Running || a.manager.o.Cluster != nil {
		if err := a.record(ctx, true); err != nil {
			a.become(before.state, nil)
			return errors.Join(err, conn.End(a.manager.o.Grace))
		}
	}
	a.serving(conn, offer)
	a.begin(conn)
	return nil
}

// record keeps whether the app is to run, also after a restart and on other servers.
func (a *app) record(ctx context.Context, running bool) error {
	_, err := a.manager.o.Records.ChangeInstallation(context.WithoutCancel(ctx), a.key.workspace, a.key.name, func(in *core.Installation) error {
		if in.ID != a.now.Load().record.ID { // by now it is another one
			return notFound(a.key.name)
		}
		in.Running = running
		return nil
	})
	if err == nil {
		a.become(same, func(v *view) { v.record.Running = running })
	}
	return err
}

// tell has other servers start the app, too, should it be dead there.
func (a *app) tell(ctx context.Context) error {
	if a.manager.o.Cluster == nil {
		return nil
	}
	return a.record(ctx, true)
}

// endFor is end on behalf of a command that has been recorded: a client that leaves changes
// nothing about it any more.
func (a *app) endFor(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.manager.o.Grace+endPatience,
		errors.New("its processes take too long to end"))
	defer cancel()
	return a.end(ctx)
}

func (y *Manager) protected(k key) bool {
	return k.workspace == core.DefaultWorkspaceID && y.setup.Load().declared[k.name].Protected
}

// failed is err under the code of the command that met it. That the app is not there any more
// stays what it is.
func failed(code core.Code, err error, name, done string) error {
	if core.CodeOf(err) == core.CodeNotFound {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return core.Wrap(code, err, "app "+name+" was not "+done+": the request was given up, or another one stopped the app")
	}
	return core.Wrap(code, err, "app "+name+" was not "+done+": "+message(err))
}

// message is err without the code that core.Error puts before it.
func message(err error) string {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Message
	}
	return strings.TrimSpace(err.Error())
}
