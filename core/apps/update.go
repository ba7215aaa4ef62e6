package apps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Update replaces an app with another version from the same source. The app keeps its data and values, and remains
// stopped if it was stopped. If the new version does not start, the old one is started again.
//
// Errors: core.CodeNotFound; core.CodeBadRequest for a source without versions; core.CodeCredentialsRequired if the new
// version needs more values; core.CodePermissionsRequired if r decides about permissions but not about all that the new
// version requests; core.CodeInstallFailed.
func (m *Manager) Update(ctx context.Context, workspace, name string, r source.UpdateRequest) (core.App, error) {
	return m.command(ctx, interact.AppRef{Workspace: workspace, Name: name}, core.CodeInstallFailed, "updated", func(ctx context.Context, a *app) error {
		o, err := m.updateOrder(a.now.Load().record, r)
		if err != nil {
			return invalidCommand{err}
		}
		limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
		defer cancel()
		found, err := m.resolver.Resolve(limit, o)
		if err != nil {
			return err
		}
		return a.updateTo(ctx, limit, o, found, r)
	})
}

// updateTo replaces an app's version with a candidate. limit bounds the time to put the candidate's files in place. The
// caller must hold the turn.
func (a *app) updateTo(ctx, limit context.Context, o source.Order, found *source.Candidate, r source.UpdateRequest) error {
	m, old, name := a.manager, a.now.Load().record, a.key.Name
	if dir := filepath.Join(a.layout().BundlesDir(name), found.Label); found.Label != "" && dir == old.Dir && m.files.Verify(limit, old, false) == nil {
		m.reportProgress(o, name, "unchanged", "version "+old.Version+" is already installed")
		return found.RemoveStaged()
	}
	if err := checkSameSource(old, found); err != nil {
		return errors.Join(err, found.RemoveStaged())
	}
	err := m.checkConfined(o, found)
	if err == nil {
		err = found.CheckValues()
	}
	if err != nil {
		return errors.Join(invalidCommand{err}, found.RemoveStaged())
	}
	if err := m.place(limit, found); err != nil {
		return errors.Join(err, found.Discard())
	}
	found.Record.ID, found.Record.Running, found.Record.InstalledAt, found.Record.Permissions = old.ID, old.Running, old.InstalledAt, old.Permissions
	if err := m.decideUpdate(ctx, r, found); err != nil {
		return errors.Join(invalidCommand{err}, found.Discard())
	}
	return a.replaceVersion(ctx, old, found)
}

// updateUploaded replaces the version of an app that was uploaded with a candidate from another upload. It keeps the
// app's settings, except for those in r. The error is core.CodeNotFound if no app has the candidate's name.
func (m *Manager) updateUploaded(ctx context.Context, o source.Order, r source.Request, resolve func(context.Context) (*source.Candidate, error)) (core.App, error) {
	limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
	defer cancel()
	if err := m.checkOrder(ctx, o); err != nil {
		return core.App{}, err
	}
	found, err := resolve(limit)
	if err != nil {
		return core.App{}, err
	}
	k := interact.AppRef{Workspace: o.Workspace, Name: found.Record.Name}
	if err := m.checkReplaceable(k); err != nil {
		return core.App{}, errors.Join(err, found.RemoveStaged())
	}
	return m.command(ctx, k, core.CodeInstallFailed, "updated", func(ctx context.Context, a *app) error {
		old := a.now.Load().record
		if old.Source.Kind != core.SourceUpload {
			err := core.Errorf(core.CodeConflict, "app %s was installed from a %s, not from an uploaded file: update or uninstall it", k.Name, old.Source.Kind)
			return errors.Join(invalidCommand{err}, found.RemoveStaged())
		}
		env := map[string]core.Secret{}
		maps.Copy(env, old.Env)
		maps.Copy(env, r.Env)
		found.Record.Env, found.Record.Patience = env, old.Patience
		return a.updateTo(ctx, limit, o, found, source.UpdateRequest{Permissions: r.Permissions, Caller: r.Caller, Restricted: r.Restricted})
	})
}

// checkSameSource rejects an update without a signature if the app has one. For an app from a registry, it also rejects
// a bundle from another registry, which may have given the name to someone else, and a different file under the
// installed version.
func checkSameSource(old core.Installation, found *source.Candidate) error {
	const again = "to install it anyway, uninstall the app and install it again"
	if signed := old.Signature; signed != nil && found.Record.Signature == nil {
		return fmt.Errorf("the app is signed by %q, but version %s has no signature; %s", signed.Signer, found.Record.Version, again)
	}
	if old.Source.Kind != core.SourceName {
		return nil
	}
	from := found.Record.Source.Registry
	switch {
	case old.Source.Registry != "" && from != old.Source.Registry:
		return fmt.Errorf("version %s comes from registry %s, but the app was installed from registry %s; %s", found.Record.Version, from, old.Source.Registry, again)
	case found.Label != "" && old.Dir != "" && found.Label != filepath.Base(old.Dir) && found.Record.Version == old.Version:
		return fmt.Errorf("registry %s now has a file for version %s that differs from the installed one; %s", from, old.Version, again)
	}
	return nil
}

// updateOrder returns the order for another version of an installed app.
func (m *Manager) updateOrder(r core.Installation, update source.UpdateRequest) (source.Order, error) {
	o, err := m.policy.Load().Check(source.Order{
		Workspace: r.Workspace, ServerName: r.Name, Exact: true, Version: update.Version, Env: r.Env, Patience: r.Patience, Tools: r.Tools, Restricted: update.Restricted,
		Source: core.Source{Kind: r.Source.Kind, Ref: r.Source.Ref, Bin: r.Source.Bin}, Progress: m.progressOf(r.Workspace, r.Name),
	})
	if err != nil {
		return o, err
	}
	switch r.Source.Kind {
	case core.SourceName:
		return o, nil
	case core.SourceNPM, core.SourcePyPI:
		o.Args = packageArgs(r)
		return o, nil
	case core.SourcePath:
		if update.Version == "" {
			return o, nil
		}
		return o, core.Errorf(core.CodeBadRequest, "an app installed from a path has no other versions: replace its files and update without a version")
	case core.SourceUpload:
		return o, core.Errorf(core.CodeBadRequest, "to update an app that was installed from an uploaded file, upload its new version with replace, or use ropewalk app update %s --file FILE", r.Name)
	default:
		return o, core.Errorf(core.CodeBadRequest, "an app installed from a %s cannot be updated: install it again", r.Source.Kind)
	}
}

// packageArgs returns the arguments that a package was installed with. For npm, these are the arguments after the
// package's script.
func packageArgs(r core.Installation) []string {
	manifest, err := bundle.ParseManifest(r.Manifest)
	if err != nil || manifest.Server.MCPConfig == nil {
		return nil
	}
	args := manifest.Server.MCPConfig.Args
	if r.Source.Kind == core.SourceNPM && len(args) > 0 {
		args = args[1:]
	}
	return args
}

// replaceVersion starts another version of an app and records it, or returns to the old one if that fails. For a
// stopped app, it only records the new version. The caller must hold the turn.
func (a *app) replaceVersion(ctx context.Context, old core.Installation, found *source.Candidate) error {
	m := a.manager
	if !old.Running {
		return a.recordVersion(ctx, old, found)
	}
	if err := a.stopToStartAgain(ctx); err != nil {
		return errors.Join(err, found.Discard())
	}
	a.showRecord(found.Record)
	a.transition(core.StateStarting, nil)
	in, lists, err := a.launchFound(ctx, found)
	if err == nil {
		if found.Record.Remote != nil {
			found.Record.Version = in.Info().Version
		}
		if err = a.recordVersion(ctx, old, found); err != nil {
			err = errors.Join(err, in.Shutdown(m.o.Grace))
		}
	} else {
		err = errors.Join(m.explainFailure(ctx, err, found), found.Discard())
	}
	if err != nil {
		a.transition(core.StateStopped, func(v *view) { v.awaited = true })
		a.showRecord(old)
		a.resume()
		newVersion := "version " + found.Record.Version
		if found.Record.Version == "" { // a remote app that has not reported its version
			newVersion = "the new app"
		}
		return core.Wrap(core.CodeInstallFailed, err, newVersion+" did not start, so version "+old.Version+" is running again: "+core.TextOf(err))
	}
	a.markRunning(in, lists)
	a.startSupervisor(in)
	a.publish(core.EventBundleStarted, core.BundleStarted{Name: a.key.Name}) // shows clients that the update is complete
	return nil
}

// recordVersion records another version of an app and removes the files of the old one.
func (a *app) recordVersion(ctx context.Context, old core.Installation, found *source.Candidate) error {
	record, err := a.changeRecord(ctx, func(in *core.Installation) error {
		if found.Record.Permissions = in.Permissions; found.Decide != nil {
			found.Record.Permissions = found.Decide(in.Permissions)
		}
		*in = found.Record
		return nil
	})
	if err != nil {
		return errors.Join(err, found.Discard())
	}
	a.showRecord(record)
	a.removeReplaced(old, record)
	a.log.Info("app updated", "from", old.Version, "to", record.Version)
	return nil
}
