package apps

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/config"
)

// The configuration declares apps under apps.<name>, in the default workspace and with exactly this name. When the
// server starts, a declared app that is missing is installed, and an app whose declaration or bundle has changed is
// replaced. The replaced app keeps its data, and is not started if it was stopped. An app that cannot be installed is
// logged and skipped. An app that cannot be started remains installed and is restarted like any other.
//
// An entry without a source does not declare an app. It only contains settings, such as protected, for an app of this
// name that someone installs.

// declaration returns the declaration of an app, and whether there is one.
func (m *Manager) declaration(k interact.AppRef) (config.App, bool) {
	d, ok := m.setup.Load().declared[k.Name]
	return d, ok && k.Workspace == core.DefaultWorkspaceID && d.Source.Ref != ""
}

func declaredOrder(name string, d config.App) source.Order {
	return source.Order{
		Workspace: core.DefaultWorkspaceID, ServerName: name, Exact: true,
		Source: d.Source, Version: d.Version, Env: d.Env, Remote: d.Remote, AllowPrivate: true, InstallScripts: d.InstallScripts,
	}
}

// updateDeclared updates an installed app to its declaration and resumes it. The caller must have acquired the app's
// turn; updateDeclared releases it.
func (m *Manager) updateDeclared(ctx context.Context, a *app, d config.App) {
	defer a.releaseTurn()
	if err := a.update(ctx, declaredOrder(a.key.Name, d)); err != nil {
		a.log.Error("could not update a declared app; it remains unchanged", "reason", core.TextOf(err))
	}
	a.resume()
}

// installMissing installs a declared app that is not installed yet.
func (m *Manager) installMissing(ctx context.Context, name string, d config.App) {
	o := declaredOrder(name, d)
	err := m.installDeclared(ctx, o)
	if core.CodeOf(err) == core.CodeAlreadyInstalled && m.o.Cluster != nil {
		return // another server installed it at the same time; this server will reconcile with the record
	}
	if err != nil {
		m.failedInstalls.add(o, err)
		m.publishInstallFailed(o, name, err)
		m.log.Error("could not install a declared app", "app", name, "reason", core.TextOf(err))
	}
}

// installDeclared records a declared app before it has run, so that it is installed even if it does not start.
func (m *Manager) installDeclared(ctx context.Context, o source.Order) error {
	release, err := m.starts.Acquire(ctx)
	if err != nil {
		return err
	}
	found, free, err := m.obtain(ctx, o, func(ctx context.Context) (*source.Candidate, error) { return m.resolver.Resolve(ctx, o) })
	release()
	if err != nil {
		return err
	}
	defer free()
	record := found.Record
	record.ID, record.Running, record.InstalledAt = rand.Text(), true, time.Now().UTC()
	if err := m.addRecord(ctx, record); err != nil {
		return errors.Join(err, found.Discard())
	}
	a := m.newApp(record)
	a.unannounced = true
	if skipped := skippedScripts(found); skipped != "" {
		a.log.Warn(skipped)
	}
	a.turn <- struct{}{}
	defer a.releaseTurn()
	m.addApp(a)
	a.resume()
	return nil
}

// update replaces an app that is not running with the bundle that o describes. The caller must hold the turn.
func (a *app) update(ctx context.Context, o source.Order) error {
	old := a.now.Load().record
	if a.manager.isUnchanged(ctx, o, old) {
		return nil
	}
	found, err := a.manager.resolver.Resolve(ctx, o)
	if err != nil {
		return err
	}
	if err := found.CheckValues(); err != nil {
		return errors.Join(err, found.RemoveStaged())
	}
	dir := filepath.Join(source.LayoutOf(a.manager.o.Home, o.Workspace).BundlesDir(old.Name), found.Label)
	if found.Label != "" && dir == old.Dir { // the same bundle with different values
		found.Record.Dir, found.Record.Manifest, found.Record.Files, found.Record.Sum = dir, old.Manifest, old.Files, old.Sum
		err = found.RemoveStaged()
	} else if err = a.manager.place(ctx, found); err != nil {
		err = errors.Join(err, found.Discard())
	}
	if err != nil {
		return err
	}
	record, err := a.changeRecord(ctx, func(in *core.Installation) error {
		next := found.Record
		next.ID, next.Running, next.InstalledAt, next.Permissions = in.ID, in.Running, in.InstalledAt, in.Permissions
		*in = next
		return nil
	})
	if err != nil {
		return err // the next Open removes the unpacked files unless the record was written after all
	}
	a.setRecord(record)
	a.log.Info("app updated", "version", record.Version)
	return nil
}

// setRecord gives the app a new record and removes the files of the old one.
func (a *app) setRecord(record core.Installation) {
	old := a.now.Load().record
	a.showRecord(record)
	a.removeReplaced(old, record)
}

func (a *app) showRecord(record core.Installation) {
	a.transition(sameState, func(v *view) {
		v.record = record
		v.describe()
	})
}

// removeReplaced removes the files of an old record that the new one does not use.
func (a *app) removeReplaced(old, record core.Installation) {
	if a.manager.files.Owns(old) && old.Dir != record.Dir {
		a.manager.files.Remove(old.Dir)
	}
}

// isUnchanged reports whether a record matches what an order would produce. It does not query registries: any installed
// version satisfies a declaration without a version. In a cluster, a path that does not exist on this server counts as
// unchanged.
func (m *Manager) isUnchanged(ctx context.Context, o source.Order, r core.Installation) bool {
	if o.Source.Kind != r.Source.Kind || o.Source.Ref != r.Source.Ref || !maps.Equal(o.Env, r.Env) {
		return false
	}
	switch o.Source.Kind {
	case core.SourceName, core.SourceNPM, core.SourcePyPI:
		return o.Version == "" || o.Version == r.Version
	case core.SourceURL:
		return sameRemote(o.Remote, r.Remote)
	default:
	}
	info, err := os.Stat(o.Source.Ref)
	switch {
	case err != nil:
		return m.o.Cluster != nil && errors.Is(err, fs.ErrNotExist)
	case info.IsDir() && r.Files != "":
		sum, err := bundle.Pack(ctx, o.Source.Ref, io.Discard, bundle.Limits{})
		return err == nil && sum == r.Files
	case r.Dir == o.Source.Ref:
		manifest, err := bundle.ReadDir(r.Dir)
		return err == nil && bytes.Equal(asStored(manifest.Raw), asStored(r.Manifest))
	}
	sum, _, err := bundle.FileSHA256(ctx, o.Source.Ref)
	return err == nil && strings.HasPrefix(sum, filepath.Base(r.Dir))
}

// asStored returns a manifest in the form that its record contains: without white space, and with encoding/json's
// escapes.
func asStored(manifest json.RawMessage) []byte {
	raw, _ := json.Marshal(manifest) // cannot fail: the manifest was parsed before
	return raw
}

func sameRemote(a, b *core.Remote) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.URL == b.URL && a.Type == b.Type && a.Auth == b.Auth && maps.Equal(a.Headers, b.Headers)
}
