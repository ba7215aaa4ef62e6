package apps

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// order is what is to be installed, wherever the wish came from.
type order struct {
	workspace  string
	serverName string // "" means as the bundle is named
	exact      bool   // serverName is a server name already
	source     core.Source
	version    string // of SourceName; "" means the latest
	env        map[string]core.Secret
	remote     *core.Remote // of SourceURL

	allowPrivate bool // a remote server that a registry names may be on a private address
}

// Install installs an app and starts it. It returns when the app runs and its record is durable;
// before that nobody sees the app, and whatever ends the install earlier (an error, the caller,
// the server's death) leaves nothing of it: what lies around is swept when the manager is opened.
// Of concurrent installs of one name exactly one wins, on whichever servers they are.
//
// Errors: core.CodeBadRequest naming the field; core.CodeCredentialsRequired with
// details.missing; core.CodeAlreadyInstalled; core.CodeInstallFailed saying why.
func (y *Manager) Install(ctx context.Context, workspace string, r InstallRequest) (core.App, error) {
	o, err := r.order(workspace)
	if err != nil {
		return core.App{}, err
	}
	ctx, leave, err := y.enter(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer leave()
	app, err := y.install(ctx, o)
	if err != nil {
		return core.App{}, installError(err)
	}
	return app, nil
}

func (y *Manager) install(ctx context.Context, o order) (core.App, error) {
	found, free, err := y.obtain(ctx, o)
	if err != nil {
		return core.App{}, err
	}
	defer free()
	record := found.record
	record.ID, record.Running, record.InstalledAt = rand.Text(), true, time.Now().UTC()
	a := y.newApp(record)
	a.turn <- struct{}{} // commands wait until the supervisor has taken over
	defer a.give()
	a.become(core.StateStarting, nil)
	conn, offer, err := a.launch(ctx)
	if err != nil {
		return core.App{}, errors.Join(err, found.discard())
	}
	if record.Remote != nil {
		record.Version = conn.Info().Version
	}
	// Durable first: an app that is seen, or told about, must still be there after a crash.
	if err := y.add(ctx, record); err != nil {
		return core.App{}, errors.Join(err, conn.End(y.o.Grace), found.discard())
	}
	a.serving(conn, offer)
	shown := a.now.Load()
	y.show(a)
	a.installed(shown)
	a.begin(conn)
	return shown.app(), nil
}

// obtain resolves an order, reserves its name and puts its files where they stay. The caller
// calls free when the install is over; what was put there goes with discard.
func (y *Manager) obtain(ctx context.Context, o order) (found *arrival, free func(), err error) {
	limit, cancel := context.WithTimeout(ctx, y.o.InstallTimeout)
	defer cancel()
	found, err = y.resolve(limit, o)
	if err != nil {
		return nil, nil, err
	}
	if err = y.abreast(limit, key{o.workspace, found.record.Name}); err == nil {
		free, err = y.reserve(key{o.workspace, found.record.Name})
	}
	if err != nil {
		return nil, nil, errors.Join(err, found.discard())
	}
	if err := y.elsewhere(limit, found.record); err != nil {
		free()
		return nil, nil, errors.Join(err, found.discard())
	}
	found.home = placesOf(y.o.Home, o.workspace).app(found.record.Name)
	_, err = os.Lstat(found.home)
	found.fresh = errors.Is(err, fs.ErrNotExist)
	if err = y.settle(limit, found); err != nil {
		err = errors.Join(err, found.discard())
		free()
		if limit.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("fetching and unpacking took longer than %v: %w", y.o.InstallTimeout, err)
		}
		return nil, nil, err
	}
	return found, free, nil
}

// settle checks the values that were given, moves the bundle to its directory and shares it.
func (y *Manager) settle(ctx context.Context, found *arrival) error {
	if err := found.checkValues(); err != nil {
		return err
	}
	if found.place == nil {
		return y.share(ctx, found)
	}
	bundles := placesOf(y.o.Home, found.record.Workspace).bundles(found.record.Name)
	dir := filepath.Join(bundles, found.label)
	if err := os.MkdirAll(bundles, 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // left of an install that was cut short: no record names it
		return err
	}
	found.record.Dir = dir
	if err := found.place(ctx, found, dir); err != nil {
		return err
	}
	return y.share(ctx, found)
}

// add writes the record of a new app. After an error that leaves unknown whether it was written it
// is taken back.
func (y *Manager) add(ctx context.Context, record core.Installation) error {
	err := y.o.Records.AddInstallation(context.WithoutCancel(ctx), record)
	if err == nil || core.CodeOf(err) == core.CodeAlreadyInstalled {
		return err
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	return errors.Join(err, y.o.Records.DeleteInstallation(limit, record.Workspace, record.Name, record.ID))
}

// elsewhere refuses an app whose name one has that another server installed just now.
func (y *Manager) elsewhere(ctx context.Context, record core.Installation) error {
	if y.o.Cluster == nil {
		return nil
	}
	_, err := y.o.Records.Installation(ctx, record.Workspace, record.Name)
	switch {
	case err == nil:
		return core.Errorf(core.CodeAlreadyInstalled, "an app named %s is installed already", record.Name)
	case core.CodeOf(err) == core.CodeNotFound:
		return nil
	}
	return err
}

// installed tells that the app is there and running (spec part 6).
func (a *app) installed(v *view) {
	a.publish(core.EventBundleInstalled, core.BundleInstalled{
		Name: v.record.Name, BundleName: v.record.BundleName, Status: v.state, UI: v.ui,
	})
}

// arrival is a bundle that was found, on its way to its place.
type arrival struct {
	record   core.Installation
	manifest *bundle.Manifest // nil for remote apps
	label    string           // of the bundle's directory; "" when the bundle is used where it is
	staged   string           // a directory under incoming that goes in any case; "" for none
	home     string           // the app's directory
	fresh    bool             // whether this install made it

	// place puts the bundle's files into dir, which does not exist; nil when there are none. It
	// may complete the record's manifest.
	place func(ctx context.Context, found *arrival, dir string) error
}

// checkValues holds the values that were given against what the bundle asks for.
func (f *arrival) checkValues() error {
	if f.manifest == nil {
		return bundle.CheckEnv(f.record.Env)
	}
	if err := f.manifest.CheckValues(f.record.Env); err != nil {
		return err
	}
	if missing := f.manifest.Missing(f.record.Env); len(missing) > 0 {
		return bundle.CredentialsRequired(missing)
	}
	return nil
}

// discard removes what an install that failed has written, and nothing that was there before.
func (f *arrival) discard() error {
	var errs []error
	if f.staged != "" {
		errs = append(errs, os.RemoveAll(f.staged))
	}
	switch {
	case f.fresh:
		errs = append(errs, os.RemoveAll(f.home))
	case f.label != "" && f.record.Dir != "":
		errs = append(errs, os.RemoveAll(f.record.Dir))
	}
	return errors.Join(errs...)
}

// installError is err under one of the codes that spec 4.2 has.
func installError(err error) error {
	switch core.CodeOf(err) {
	case core.CodeBadRequest, core.CodeCredentialsRequired, core.CodeAlreadyInstalled, core.CodeUnavailable:
		e, _ := errors.AsType[*core.Error](err)
		return e
	default:
	}
	if errors.Is(err, context.Canceled) {
		return core.Wrap(core.CodeInstallFailed, err, "the install was given up before it was complete; nothing of it is left")
	}
	return core.Wrap(core.CodeInstallFailed, err, message(err))
}
