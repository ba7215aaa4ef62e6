package apps

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/config"
)

// The configuration declares apps under apps.<name>, in the default workspace and under just that
// name. At the start of the server a declared app that is missing is installed, and one whose
// declaration or bundle changed is replaced; its data and whether it was stopped stay. An app
// that cannot be installed is logged and passed over; one that cannot be started is kept, and
// restarted like any other.
//
// An entry without a source declares nothing: it only says what holds for an app of that name
// that someone installs, such as protected.

// declared is the declaration of an app.
func (y *Manager) declared(k key) (config.App, bool) {
	d, ok := y.setup.Load().declared[k.name]
	return d, ok && k.workspace == core.DefaultWorkspaceID && d.Source.Ref != ""
}

func declaredOrder(name string, d config.App) order {
	return order{
		workspace: core.DefaultWorkspaceID, serverName: name, exact: true,
		source: d.Source, version: d.Version, env: d.Env, remote: d.Remote, allowPrivate: true,
	}
}

// bringUpToDate makes an installed app be as it is declared, and resumes it. The caller has taken
// the app's turn; it is given back here.
func (y *Manager) bringUpToDate(ctx context.Context, a *app, d config.App) {
	defer a.give()
	if err := a.update(ctx, declaredOrder(a.key.name, d)); err != nil {
		a.log.Error("A declared app could not be brought up to date; it stays as it is", "reason", message(err))
	}
	a.resume()
}

// installMissing installs a declared app that is not there.
func (y *Manager) installMissing(ctx context.Context, name string, d config.App) {
	err := y.installDeclared(ctx, declaredOrder(name, d))
	if core.CodeOf(err) == core.CodeAlreadyInstalled && y.o.Cluster != nil {
		return // by another server, at the same time; that is followed
	}
	if err != nil {
		y.log.Error("A declared app could not be installed", "app", name, "reason", message(err))
	}
}

// installDeclared records a declared app before it has run: what is declared is there, even when
// it is dead.
func (y *Manager) installDeclared(ctx context.Context, o order) error {
	release, err := y.starts.acquire(ctx)
	if err != nil {
		return err
	}
	found, free, err := y.obtain(ctx, o)
	release()
	if err != nil {
		return err
	}
	defer free()
	record := found.record
	record.ID, record.Running, record.InstalledAt = rand.Text(), true, time.Now().UTC()
	if err := y.add(ctx, record); err != nil {
		return errors.Join(err, found.discard())
	}
	a := y.newApp(record)
	a.unannounced = true
	a.turn <- struct{}{}
	defer a.give()
	y.show(a)
	a.resume()
	return nil
}

// update replaces an app that is not running by what is declared now. The caller holds the turn.
func (a *app) update(ctx context.Context, o order) error {
	old := a.now.Load().record
	if a.manager.unchanged(ctx, o, old) {
		return nil
	}
	found, err := a.manager.resolve(ctx, o)
	if err != nil {
		return err
	}
	dir := filepath.Join(placesOf(a.manager.o.Home, o.workspace).bundles(old.Name), found.label)
	if found.label != "" && dir == old.Dir { // the same bundle, declared with other values
		found.record.Dir, found.record.Manifest, found.record.Files = dir, old.Manifest, old.Files
		err = found.checkValues()
		a.manager.clear(found.staged)
	} else if err = a.manager.settle(ctx, found); err != nil {
		err = errors.Join(err, found.discard())
	}
	if err != nil {
		return err
	}
	record, err := a.manager.o.Records.ChangeInstallation(context.WithoutCancel(ctx), o.workspace, old.Name, func(in *core.Installation) error {
		if in.ID != old.ID { // by now it is another one
			return notFound(old.Name)
		}
		next := found.record
		next.ID, next.Running, next.InstalledAt = in.ID, in.Running, in.InstalledAt
		*in = next
		return nil
	})
	if err != nil {
		return err // what was unpacked is swept at the next start, unless the record was written after all
	}
	a.become(same, func(v *view) {
		v.record = record
		v.describe()
	})
	if a.manager.owns(old) && old.Dir != record.Dir {
		a.manager.clear(old.Dir)
	}
	a.log.Info("A declared app was brought up to date", "version", record.Version)
	return nil
}

// owns reports whether the server itself put the bundle's files where they are.
func (y *Manager) owns(r core.Installation) bool {
	return r.Dir != "" && strings.HasPrefix(r.Dir, placesOf(y.o.Home, r.Workspace).bundles(r.Name)+string(os.PathSeparator))
}

// unchanged reports whether a record is what an order would give. A registry is not asked: a
// declaration without a version is content with the one that is installed. A file that is not on this
// server is another's to watch.
func (y *Manager) unchanged(ctx context.Context, o order, r core.Installation) bool {
	if o.source.Kind != r.Source.Kind || o.source.Ref != r.Source.Ref || !maps.Equal(o.env, r.Env) {
		return false
	}
	switch o.source.Kind {
	case core.SourceName:
		return o.version == "" || o.version == r.Version
	case core.SourceURL:
		return sameRemote(o.remote, r.Remote)
	default:
	}
	info, err := os.Stat(o.source.Ref)
	switch {
	case err != nil:
		return y.o.Cluster != nil && errors.Is(err, fs.ErrNotExist)
	case info.IsDir() && r.Files != "":
		sum, err := bundle.Pack(ctx, o.source.Ref, io.Discard, bundle.Limits{})
		return err == nil && sum == r.Files
	case r.Dir == o.source.Ref:
		m, err := bundle.ReadDir(r.Dir)
		return err == nil && bytes.Equal(m.Raw, r.Manifest)
	}
	sum, _, err := bundle.FileSHA256(ctx, o.source.Ref)
	return err == nil && strings.HasPrefix(sum, filepath.Base(r.Dir))
}

func sameRemote(a, b *core.Remote) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.URL == b.URL && a.Type == b.Type && a.Auth == b.Auth && maps.Equal(a.Headers, b.Headers)
}
