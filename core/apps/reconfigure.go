package apps

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
)

// setup is the configuration of the apps. A reload replaces it.
type setup struct {
	registries []source.NamedRegistry
	declared   map[string]config.App
	replaced   chan struct{} // closed when a reload has replaced this setup
}

func newSetup(registries []source.NamedRegistry, declared map[string]config.App) *setup {
	return &setup{registries: registries, declared: declared, replaced: make(chan struct{})}
}

// Reconfigure applies new registries and declarations. It returns immediately. In the background, newly declared apps
// are installed, apps whose declaration changed are replaced, and apps whose sandbox settings changed are restarted.
// Other apps are left alone.
func (m *Manager) Reconfigure(registries []source.NamedRegistry, declared map[string]config.App) {
	old := m.setup.Swap(newSetup(registries, declared))
	close(old.replaced)
	before := old.declared
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(declared))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, d := before[name], declared[name]
		if was.Source.Ref != "" && d.Source.Ref == "" {
			m.failedInstalls.remove(interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: name})
		}
		confined := !reflect.DeepEqual(was.Sandbox, d.Sandbox)
		if reflect.DeepEqual(was, d) || d.Source.Ref == "" && !confined {
			continue
		}
		m.background(func(ctx context.Context) {
			replaced := d.Source.Ref != "" && m.applyDeclaration(ctx, name, d)
			if confined && !replaced {
				m.applySandbox(ctx, name)
			}
		})
	}
}

// applySandbox restarts an app with the current sandbox settings if it should be running.
func (m *Manager) applySandbox(ctx context.Context, name string) {
	key := interact.AppRef{Workspace: core.DefaultWorkspaceID, Name: name}
	_, err := m.command(ctx, key, core.CodeStartFailed, "restarted with its new sandbox settings", func(ctx context.Context, a *app) error {
		if record := a.now.Load().record; !record.Running || record.Remote != nil {
			return nil
		}
		a.log.Info("restarting the app because its sandbox settings have changed")
		if err := a.stopToStartAgain(ctx); err != nil {
			return err
		}
		return a.startAgain(ctx)
	})
	if err != nil && core.CodeOf(err) != core.CodeNotFound {
		m.log.Error("app is not running with its new sandbox settings", "app", name, "error", err)
	}
}

// SetMaxAwake replaces Options.MaxAwake.
func (m *Manager) SetMaxAwake(n int) { m.crowd.limit(n) }

// SetInstallPolicy replaces the rules about what may be installed over the API.
func (m *Manager) SetInstallPolicy(c config.Install) { m.policy.Store(source.NewPolicy(c)) }

// applyDeclaration makes an app match its current declaration. It reports false if the app was already up to date and
// was not touched.
func (m *Manager) applyDeclaration(ctx context.Context, name string, d config.App) (replaced bool) {
	a, err := m.find(core.DefaultWorkspaceID, name)
	if err != nil {
		m.installMissing(ctx, name, d)
		return true
	}
	if err := a.acquireTurn(ctx); err != nil {
		return true // the app was removed, or the server is shutting down
	}
	if m.isUnchanged(ctx, declaredOrder(name, d), a.now.Load().record) {
		a.releaseTurn()
		return false
	}
	if err := a.stopForCommand(ctx); err != nil {
		a.log.Error("some processes of a replaced app are still running", "error", err)
	}
	m.updateDeclared(ctx, a, d)
	return true
}
