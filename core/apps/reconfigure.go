package apps

import (
	"context"
	"reflect"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
)

// setup is what the configuration says about apps. A reload replaces it.
type setup struct {
	registries []source.NamedRegistry
	declared   map[string]config.App
}

// Reconfigure applies other registries and declarations. It returns at once: in the background, apps
// that are newly declared are installed and those whose declaration changed are replaced. No other app
// is touched.
func (m *Manager) Reconfigure(registries []source.NamedRegistry, declared map[string]config.App) {
	before := m.setup.Swap(&setup{registries: registries, declared: declared})
	for name := range before.declared {
		if declared[name].Source.Ref == "" {
			m.failedInstalls.remove(interact.AppKey{Workspace: core.DefaultWorkspaceID, Name: name})
		}
	}
	for name, d := range declared {
		if d.Source.Ref == "" || reflect.DeepEqual(before.declared[name], d) {
			continue
		}
		ctx, done, err := m.beginWork(context.Background())
		if err != nil {
			return // the server is shutting down
		}
		go func() {
			defer done()
			m.applyDeclaration(ctx, name, d)
		}()
	}
}

// SetInstallPolicy replaces the rules of what may be installed over the API.
func (m *Manager) SetInstallPolicy(c config.Install) { m.policy.Store(source.NewPolicy(c)) }

// applyDeclaration makes an app what is declared now.
func (m *Manager) applyDeclaration(ctx context.Context, name string, d config.App) {
	a, err := m.find(core.DefaultWorkspaceID, name)
	if err != nil {
		m.installMissing(ctx, name, d)
		return
	}
	if err := a.acquireTurn(ctx); err != nil {
		return // the app was removed, or the server is shutting down
	}
	if m.isUnchanged(ctx, declaredOrder(name, d), a.now.Load().record) {
		a.releaseTurn()
		return
	}
	if err := a.stopForCommand(ctx); err != nil {
		a.log.Error("not all processes of a replaced app have ended", "error", err)
	}
	m.updateDeclared(ctx, a, d)
}
