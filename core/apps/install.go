package apps

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Install installs an app and starts it. It returns when the app is running and its record is durable. Until then, the
// app is not visible. An install that ends early (an error, a caller that gives up, a server crash) leaves nothing
// behind: the next Open removes remaining files. If several installs use the same name concurrently, exactly one
// succeeds, on any server of a cluster.
//
// Errors: core.CodeBadRequest with the name of the field; core.CodeCredentialsRequired and core.CodePermissionsRequired
// with details.missing; core.CodeAlreadyInstalled; core.CodeForbidden; core.CodeUnavailable; core.CodeInstallFailed
// with the reason.
func (m *Manager) Install(ctx context.Context, workspace string, r source.Request) (core.App, error) {
	o, err := r.Order(workspace)
	if err != nil {
		return core.App{}, err
	}
	if o, err = m.policy.Load().Check(o); err != nil {
		return core.App{}, err
	}
	o.Progress = m.progressOf(workspace, expectedName(o))
	ctx, done, err := m.beginWork(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer done()
	app, err := m.install(ctx, o)
	if err != nil {
		return core.App{}, installError(err)
	}
	return app, nil
}

func (m *Manager) install(ctx context.Context, o source.Order) (core.App, error) {
	return m.installFound(ctx, o, func(ctx context.Context) (*source.Candidate, error) { return m.resolver.Resolve(ctx, o) })
}

// installFound installs the bundle that resolve finds. If that fails, it publishes the failure.
func (m *Manager) installFound(ctx context.Context, o source.Order, resolve func(context.Context) (*source.Candidate, error)) (core.App, error) {
	name := expectedName(o)
	app, err := m.installResolved(ctx, o, func(ctx context.Context) (*source.Candidate, error) {
		found, err := resolve(ctx)
		if err == nil {
			name = found.Record.Name
		}
		return found, err
	})
	if err != nil {
		m.publishInstallFailed(o, name, err)
	}
	return app, err
}

func (m *Manager) installResolved(ctx context.Context, o source.Order, resolve func(context.Context) (*source.Candidate, error)) (core.App, error) {
	if err := m.checkOrder(ctx, o); err != nil {
		return core.App{}, err
	}
	found, free, err := m.obtain(ctx, o, resolve)
	if err != nil {
		return core.App{}, err
	}
	defer free()
	record := found.Record
	record.ID, record.Running, record.InstalledAt = rand.Text(), true, time.Now().UTC()
	if err := m.decideInstall(ctx, o, &record); err != nil {
		return core.App{}, errors.Join(err, found.Discard())
	}
	a := m.newApp(record)
	a.turn <- struct{}{} // commands wait until the supervisor is running
	defer a.releaseTurn()
	a.transition(core.StateStarting, nil)
	m.reportProgress(o, record.Name, "starting", record.PublicName())
	if found.Manifest != nil && found.Manifest.Description == "" {
		a.log.Warn("manifest has an empty description")
	}
	in, lists, err := a.launchFound(ctx, found)
	if err != nil {
		m.forgetPins(a.key, "")
		return core.App{}, errors.Join(a.withHints(o, m.explainFailure(ctx, err, found)), found.Discard())
	}
	if record.Remote = found.Record.Remote; record.Remote != nil {
		record.Version = in.Info().Version
	}
	// Write the record first: an app that someone has seen or that was announced must survive a crash.
	if err := m.addRecord(ctx, record); err != nil {
		m.forgetPins(a.key, "")
		return core.App{}, errors.Join(err, in.Shutdown(m.o.Grace), found.Discard())
	}
	a.markRunning(in, lists)
	shown := a.now.Load()
	m.addApp(a)
	a.publishInstalled(shown)
	a.startSupervisor(in)
	return shown.app(), nil
}

// explainFailure adds likely causes to the failure of a new app: its runtime has the wrong version, or install scripts,
// which native packages need, were not run. The version is checked only after a failure, so that a wrong version range
// does not block a working app.
func (m *Manager) explainFailure(ctx context.Context, err error, found *source.Candidate) error {
	if core.CodeOf(err) != core.CodeInternal {
		return err
	}
	if other := m.resolver.CheckRuntime(ctx, found); other != nil {
		return fmt.Errorf("%w (%w)", other, err)
	}
	if skipped := skippedScripts(found); skipped != "" {
		return fmt.Errorf("%w; %s", err, skipped)
	}
	return err
}

// skippedScripts returns a sentence about install scripts that were not run and how to allow them; "" if there are
// none.
func skippedScripts(found *source.Candidate) string {
	if len(found.SkippedScripts) == 0 {
		return ""
	}
	return fmt.Sprintf("the install scripts of %s were not run: if the app needs them, an organization admin can allow them with apps.%s.installScripts: true",
		strings.Join(found.SkippedScripts, ", "), found.Record.Name)
}

// obtain resolves an order, reserves the app's name and puts its files in place. The caller must call free when the
// install has ended.
func (m *Manager) obtain(ctx context.Context, o source.Order, resolve func(context.Context) (*source.Candidate, error)) (found *source.Candidate, free func(), err error) {
	limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
	defer cancel()
	found, err = resolve(limit)
	if err != nil {
		return nil, nil, err
	}
	if err := m.checkConfined(o, found); err != nil {
		return nil, nil, errors.Join(err, found.Discard())
	}
	k := interact.AppRef{Workspace: o.Workspace, Name: found.Record.Name}
	err = m.syncRecord(limit, k)
	if _, aside := m.setAsideAs(k); err == nil && aside { // the removal of its files may be in progress
		free, err = m.awaitName(limit, k)
	} else if err == nil {
		free, err = m.reserveName(k)
	}
	if err != nil {
		return nil, nil, errors.Join(err, found.Discard())
	}
	if err := m.checkUnrecorded(limit, found.Record); err != nil {
		free()
		return nil, nil, errors.Join(err, found.Discard())
	}
	if err = found.CheckValues(); err == nil {
		err = m.endUndo(limit, k)
	}
	if err != nil {
		free()
		return nil, nil, errors.Join(err, found.Discard())
	}
	appDir := source.LayoutOf(m.o.Home, o.Workspace).AppDir(found.Record.Name)
	_, err = os.Lstat(appDir)
	found.SetAppDir(appDir, !errors.Is(err, fs.ErrNotExist))
	if !found.IsPlaced() {
		m.reportProgress(o, found.Record.Name, "installing", found.Record.PublicName()+" "+found.Record.Version)
	}
	if err = m.place(limit, found); err != nil {
		err = errors.Join(err, found.Discard())
		free()
		if limit.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("fetching and unpacking took longer than %v: %w", m.o.InstallTimeout, err)
		}
		return nil, nil, err
	}
	return found, free, nil
}

// checkConfined returns core.CodeForbidden if a workspace admin installs code that would run with the server's rights.
// Only an organization admin may do that.
func (m *Manager) checkConfined(o source.Order, found *source.Candidate) error {
	k := interact.AppRef{Workspace: o.Workspace, Name: found.Record.Name}
	if !o.Restricted || found.Record.Remote != nil || m.o.Confinement.Level(m.sandboxOf(k)) > sandbox.LevelNone {
		return nil
	}
	reason := m.o.Confinement.Probe.Reason
	if reason == "" {
		reason = "sandbox.level is none"
	}
	return core.Errorf(core.CodeForbidden, "this server cannot confine apps (%s): installing %.200s requires an organization admin or owner", reason, found.Record.PublicName())
}

// place moves the bundle of an installation to its directory, shares its files with the other servers and hashes them.
// The caller must have checked its values.
func (m *Manager) place(ctx context.Context, found *source.Candidate) error {
	if err := m.placeFiles(ctx, found); err != nil {
		return err
	}
	var err error
	found.Record.Sum, err = m.files.Seal(ctx, found.Record)
	return err
}

func (m *Manager) placeFiles(ctx context.Context, found *source.Candidate) error {
	if found.IsPlaced() {
		return m.files.Share(ctx, found)
	}
	bundles := source.LayoutOf(m.o.Home, found.Record.Workspace).BundlesDir(found.Record.Name)
	dir := filepath.Join(bundles, found.Label)
	if err := os.MkdirAll(bundles, 0o700); err != nil {
		return err
	}
	if err := cleanup.RemoveAll(dir); err != nil { // left by an interrupted install; no record refers to it
		return err
	}
	if err := found.Place(ctx, dir); err != nil {
		return err
	}
	return m.files.Share(ctx, found)
}

// addRecord writes the record of a new app. If an error leaves it unclear whether the record was written, addRecord
// deletes it again.
func (m *Manager) addRecord(ctx context.Context, record core.Installation) error {
	err := m.o.Records.AddInstallation(context.WithoutCancel(ctx), record)
	if err == nil || core.CodeOf(err) == core.CodeAlreadyInstalled {
		return err
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return errors.Join(err, m.o.Records.DeleteInstallation(limit, record.Workspace, record.Name, record.ID))
}

// checkUnrecorded returns core.CodeAlreadyInstalled if another server has just used the name.
func (m *Manager) checkUnrecorded(ctx context.Context, record core.Installation) error {
	if m.o.Cluster == nil {
		return nil
	}
	_, err := m.o.Records.Installation(ctx, record.Workspace, record.Name)
	switch {
	case err == nil:
		return core.AlreadyInstalled(record.Name)
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	}
	return err
}

func (a *app) publishInstalled(v *view) {
	a.publish(core.EventBundleInstalled, core.BundleInstalled{
		Name: v.record.Name, BundleName: v.record.PublicName(), Status: v.state, UI: v.servedUI(),
	})
}

// installError returns err with one of Install's codes.
func installError(err error) error {
	switch core.CodeOf(err) {
	case core.CodeBadRequest, core.CodeCredentialsRequired, core.CodePermissionsRequired, core.CodeAlreadyInstalled, core.CodeUnavailable, core.CodePayloadTooLarge, core.CodeForbidden:
		e, _ := errors.AsType[*core.Error](err)
		return e
	default:
	}
	if errors.Is(err, context.Canceled) {
		return core.Wrap(core.CodeInstallFailed, err, "the install was cancelled and left nothing behind")
	}
	return core.Wrap(core.CodeInstallFailed, err, core.TextOf(err))
}
