package apps

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

const (
	maxImports      = 100 // servers of one import
	importsAtOnce   = 2   // of them that are installed at the same time
	statusPlanned   = "planned"
	statusInstalled = "installed"
	statusExists    = "exists"
	statusFailed    = "failed"
)

// Import installs the servers of an mcpServers object. A dry run resolves them to exact versions and
// says what would be installed. One server that fails does not keep the others from being installed;
// an error concerns the request as a whole.
func (m *Manager) Import(ctx context.Context, workspace string, r source.ImportRequest) (source.ImportResult, error) {
	if len(r.MCPServers) == 0 || len(r.MCPServers) > maxImports {
		return source.ImportResult{}, core.Errorf(core.CodeBadRequest, "mcpServers must contain 1 to %d servers", maxImports)
	}
	ctx, done, err := m.beginWork(ctx)
	if err != nil {
		return source.ImportResult{}, err
	}
	defer done()
	names := slices.Sorted(maps.Keys(r.MCPServers))
	result := source.ImportResult{DryRun: r.DryRun, Servers: make([]source.ImportedServer, len(names))}
	places := make(chan struct{}, importsAtOnce)
	var importing sync.WaitGroup
	for i, name := range names {
		importing.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			result.Servers[i] = m.importServer(ctx, workspace, name, r)
		})
	}
	importing.Wait()
	return result, nil
}

func (m *Manager) importServer(ctx context.Context, workspace, name string, r source.ImportRequest) source.ImportedServer {
	s := source.ImportedServer{Name: name, ServerName: name}
	fail := func(err error) source.ImportedServer {
		err = installError(err)
		s.Status, s.Error, s.Message = statusFailed, string(core.CodeOf(err)), core.TextOf(err)
		if e, ok := errors.AsType[*core.Error](err); ok {
			s.Details = e.Details
		}
		if core.CodeOf(err) == core.CodeAlreadyInstalled {
			s.Status = statusExists
		}
		return s
	}
	request, err := source.ParseServer(name, r.MCPServers[name])
	if err != nil {
		return fail(err)
	}
	request.AllowPrivate, request.Restricted = r.AllowPrivate, r.Restricted
	o, err := request.Order(workspace)
	if err != nil {
		return fail(err)
	}
	s.Source, s.Ref = o.Source.Kind, o.Source.Ref
	if o, err = m.policy.Load().Check(o); err != nil {
		return fail(err)
	}
	if r.Allowed != nil {
		if err := r.Allowed(o.Source.Kind); err != nil {
			return fail(err)
		}
	}
	o.Progress = m.progressOf(workspace, expectedName(o))
	if r.DryRun {
		return m.planImport(ctx, s, o, fail)
	}
	app, err := m.install(ctx, o)
	if err != nil {
		return fail(err)
	}
	s.Status, s.ServerName, s.Version, s.App = statusInstalled, app.Name, app.Version, &app
	return s
}

// planImport says what would be installed.
func (m *Manager) planImport(ctx context.Context, s source.ImportedServer, o source.Order, fail func(error) source.ImportedServer) source.ImportedServer {
	limit, cancel := context.WithTimeout(ctx, m.o.InstallTimeout)
	defer cancel()
	found, err := m.resolver.Resolve(limit, o)
	if err != nil {
		return fail(err)
	}
	s.ServerName, s.Version, s.Status = found.Record.Name, found.Record.Version, statusPlanned
	err = errors.Join(found.CheckValues(), found.RemoveStaged())
	if _, missing := m.find(o.Workspace, found.Record.Name); err == nil && missing == nil {
		err = core.AlreadyInstalled(found.Record.Name)
	}
	if err != nil {
		return fail(err)
	}
	return s
}

// InstallUpload installs an .mcpb file that is sent to the server, with the server name and the values
// of r. The errors are those of Install, and core.CodePayloadTooLarge.
func (m *Manager) InstallUpload(ctx context.Context, workspace string, body io.Reader, r source.Request) (core.App, error) {
	ctx, done, err := m.beginWork(ctx)
	if err != nil {
		return core.App{}, err
	}
	defer done()
	o := source.Order{
		Workspace: workspace, ServerName: r.ServerName, Env: r.Env, Restricted: r.Restricted, Source: core.Source{Kind: core.SourceUpload, Ref: "file"},
	}
	if o, err = m.policy.Load().Check(o); err != nil {
		return core.App{}, err
	}
	o.Progress = m.progressOf(workspace, expectedName(o))
	app, err := m.installFound(ctx, o, func(ctx context.Context) (*source.Candidate, error) {
		return m.resolver.FromUpload(ctx, o, body)
	})
	if err != nil {
		return core.App{}, installError(err)
	}
	return app, nil
}
