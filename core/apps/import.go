package apps

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/pasted"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

const (
	maxImports      = 100 // maximum number of servers in one import
	importsAtOnce   = 2   // how many of them are installed concurrently
	statusPlanned   = "planned"
	statusInstalled = "installed"
	statusReplaced  = "replaced"
	statusExists    = "exists"
	statusDisabled  = "disabled"
	statusFailed    = "failed"
)

// Import installs the servers in an MCP client's configuration. A dry run resolves them to exact versions and reports
// what would be installed. If one server fails, the others are still installed. The error is only for problems with the
// request as a whole.
func (m *Manager) Import(ctx context.Context, workspace string, r source.ImportRequest) (source.ImportResult, error) {
	servers, err := r.Servers()
	if err != nil {
		return source.ImportResult{}, err
	}
	if len(servers) == 0 || len(servers) > maxImports {
		return source.ImportResult{}, core.Errorf(core.CodeBadRequest, "mcpServers must contain 1 to %d servers", maxImports)
	}
	ctx, done, err := m.beginWork(ctx)
	if err != nil {
		return source.ImportResult{}, err
	}
	defer done()
	names := slices.Sorted(maps.Keys(servers))
	result := source.ImportResult{DryRun: r.DryRun, Servers: make([]source.ImportedServer, len(names))}
	var importing errgroup.Group
	importing.SetLimit(importsAtOnce)
	taken := map[string]string{} // names of definitions, by app name
	for i, name := range names {
		if app, err := bundle.ServerName(name); err == nil && taken[app] != "" {
			err = core.Errorf(core.CodeBadRequest, "mcpServers.%.100s and mcpServers.%.100s would both be installed as app %s; rename one of them", taken[app], name, app)
			result.Servers[i] = source.ImportedServer{Name: name, ServerName: app}
			failImport(&result.Servers[i], err)
			continue
		} else if err == nil {
			taken[app] = name
		}
		importing.Go(func() error {
			s := source.ImportedServer{Name: name, ServerName: name}
			if err := m.importServer(ctx, workspace, &s, servers[name], r); err != nil {
				failImport(&s, err)
			}
			result.Servers[i] = s
			return nil
		})
	}
	return result, importing.Wait()
}

// failImport records why a server was not installed.
func failImport(s *source.ImportedServer, err error) {
	_, disabled := errors.AsType[*pasted.Disabled](err)
	err = installError(err)
	s.Status, s.Error, s.Message = statusFailed, string(core.CodeOf(err)), core.TextOf(err)
	if e, ok := errors.AsType[*core.Error](err); ok {
		s.Details = e.Details
	}
	switch {
	case disabled:
		s.Status = statusDisabled
	case core.CodeOf(err) == core.CodeAlreadyInstalled:
		s.Status = statusExists
	}
}

func (m *Manager) importServer(ctx context.Context, workspace string, s *source.ImportedServer, definition json.RawMessage, r source.ImportRequest) error {
	values := map[string]core.Secret{"HOME": core.Secret(m.o.HostEnv["HOME"])}
	maps.Copy(values, r.Values)
	parsed, err := source.ParseServer(s.Name, definition, values)
	s.Inputs, s.Left = parsed.Inputs, parsed.Left
	if err != nil {
		return err
	}
	request := parsed.Request
	s.ToolFilter = request.Tools
	request.AllowPrivate, request.Restricted = r.AllowPrivate, r.Restricted
	request.Caller, request.Permissions, request.Hints = r.Caller, r.Permissions[s.Name], true
	o, err := request.Order(workspace)
	if err != nil {
		return err
	}
	s.Source, s.Ref, s.Args, s.Env = o.Source.Kind, o.Source.PublicRef(), o.ShownArgs(), slices.Sorted(maps.Keys(o.Env))
	if o.Remote != nil {
		s.Headers = slices.Sorted(maps.Keys(o.Remote.Headers))
	}
	if o, err = m.policy.Load().Check(o); err != nil {
		return err
	}
	if r.Allowed != nil {
		if err := r.Allowed(o.Source.Kind); err != nil {
			return err
		}
	}
	o.Progress = m.progressOf(workspace, expectedName(o))
	if r.DryRun {
		return m.planImport(ctx, s, o, r.Existing)
	}
	status := statusInstalled
	app, err := m.install(ctx, o)
	if core.CodeOf(err) == core.CodeAlreadyInstalled && r.Existing == source.ExistingReplace {
		status = statusReplaced
		app, err = m.replace(ctx, o)
	}
	if err != nil {
		return err
	}
	s.Status, s.ServerName, s.Version, s.App = status, app.Name, app.Version, &app
	return nil
}

// planImport reports what would be installed.
func (m *Manager) planImport(ctx context.Context, s *source.ImportedServer, o source.Order, existing string) error {
	limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
	defer cancel()
	found, err := m.resolver.Resolve(limit, o)
	if err != nil {
		return err
	}
	s.ServerName, s.Version, s.Status = found.Record.Name, found.Record.Version, statusPlanned
	if o.Remote == nil {
		s.Requests = m.grantableBy(o.Caller, m.guard.Requests(orderDefinition(o)))
	}
	err = errors.Join(found.CheckValues(), found.RemoveStaged())
	if err != nil {
		return err
	}
	k := interact.AppRef{Workspace: o.Workspace, Name: found.Record.Name}
	if _, missing := m.find(k.Workspace, k.Name); missing != nil {
		return nil
	}
	if existing == source.ExistingReplace {
		return m.checkReplaceable(k)
	}
	return core.AlreadyInstalled(found.Record.Name)
}

// replace replaces an installed app with another one. If the new app does not start, the old one is started again. The
// old app's data is kept.
func (m *Manager) replace(ctx context.Context, o source.Order) (core.App, error) {
	limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
	defer cancel()
	found, err := m.resolver.Resolve(limit, o)
	if err != nil {
		return core.App{}, err
	}
	k := interact.AppRef{Workspace: o.Workspace, Name: found.Record.Name}
	err = errors.Join(m.checkReplaceable(k), m.checkConfined(o, found))
	if err != nil {
		return core.App{}, errors.Join(err, found.Discard())
	}
	if found.Label != "" {
		found.SetLabel(hex.EncodeToString([]byte(rand.Text()))) // the old app may be running from the same files
	}
	return m.command(ctx, k, core.CodeInstallFailed, "replaced", func(ctx context.Context, a *app) error {
		err := found.CheckValues()
		if err == nil {
			err = m.place(limit, found)
		}
		if err != nil {
			return errors.Join(err, found.Discard())
		}
		if err := m.decideInstall(ctx, o, &found.Record); err != nil {
			return errors.Join(err, found.Discard())
		}
		old := a.now.Load().record
		decided := found.Record.Permissions
		found.Decide = func([]core.Permission) []core.Permission { return decided }
		found.Record.ID, found.Record.Running, found.Record.InstalledAt = old.ID, true, time.Now().UTC()
		return a.replaceVersion(ctx, old, found)
	})
}

// checkReplaceable returns core.CodeForbidden if the configuration protects or declares the app.
func (m *Manager) checkReplaceable(k interact.AppRef) error {
	switch {
	case m.isProtected(k):
		return core.Errorf(core.CodeForbidden, "app %s is protected by apps.%s.protected in the configuration", k.Name, k.Name)
	case k.Workspace == core.DefaultWorkspaceID && m.setup.Load().declared[k.Name].Source.Ref != "":
		return core.Errorf(core.CodeForbidden, "app %s is declared by apps.%s in the configuration; change it there", k.Name, k.Name)
	}
	return nil
}

// InstallUpload installs an .mcpb file that a client uploads, with the server name and values in r. If r.Replace is set
// and an app from another upload has the name, the file is a new version of that app. The errors are those of Install and
// Update, and core.CodePayloadTooLarge. core.CodeAlreadyInstalled has details if r.Replace would replace the app.
func (m *Manager) InstallUpload(ctx context.Context, workspace string, body io.Reader, r source.Request) (core.App, error) {
	ctx, done, err := m.beginWork(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer done()
	o := source.Order{
		Workspace: workspace, ServerName: r.ServerName, Env: r.Env, Restricted: r.Restricted, Caller: r.Caller, Permissions: r.Permissions, Hints: r.Hints, Source: core.Source{Kind: core.SourceUpload, Ref: "file"},
	}
	if o, err = m.policy.Load().Check(o); err != nil {
		return core.App{}, err
	}
	o.Progress = m.progressOf(workspace, expectedName(o))
	var found *source.Candidate
	resolve := func(ctx context.Context) (_ *source.Candidate, err error) {
		found, err = m.resolver.FromUpload(ctx, o, body)
		return found, err
	}
	if r.Replace {
		app, err := m.updateUploaded(ctx, o, r, resolve)
		switch {
		case err == nil || core.CodeOf(err) == core.CodeConflict:
			return app, err
		case core.CodeOf(err) != core.CodeNotFound:
			return core.App{}, uploadError(err)
		}
		resolve = func(context.Context) (*source.Candidate, error) { return found, nil }
	}
	app, err := m.installFound(ctx, o, resolve)
	switch {
	case core.CodeOf(err) == core.CodeAlreadyInstalled:
		return core.App{}, m.withVersions(workspace, found, err)
	case err != nil:
		return core.App{}, uploadError(err)
	}
	return app, nil
}

// withVersions adds the installed and the uploaded version to the error for a name that another uploaded app already
// has.
func (m *Manager) withVersions(workspace string, found *source.Candidate, err error) error {
	a, missing := m.find(workspace, found.Record.Name)
	if missing != nil {
		return err
	}
	old := a.now.Load().record
	if old.Source.Kind != core.SourceUpload {
		return err
	}
	return core.AlreadyInstalled(old.Name).WithDetails(map[string]any{"name": old.Name, "installed": old.Version, "offered": found.Record.Version})
}

// uploadError is like installError, but returns core.CodeBadRequest for a file that is not a valid bundle.
func uploadError(err error) error {
	failed := installError(err)
	_, badManifest := errors.AsType[*bundle.ManifestError](err)
	if core.CodeOf(failed) == core.CodeInstallFailed && (badManifest || errors.Is(err, bundle.ErrArchive)) {
		return core.Wrap(core.CodeBadRequest, err, "the file is not a usable bundle: "+core.TextOf(err))
	}
	return failed
}
