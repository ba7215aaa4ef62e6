package apps

import (
	"context"
	"reflect"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// setup is what the configuration says about apps, which a reload exchanges.
type setup struct {
	registries []NamedRegistry
	declared   map[string]config.App
}

// Reconfigure puts other registries and declarations into force. It returns at once: an app that
// is newly declared is installed behind its back, and one whose declaration changed is replaced.
// No other app is touched.
func (y *Manager) Reconfigure(registries []NamedRegistry, declared map[string]config.App) {
	before := y.setup.Swap(&setup{registries: registries, declared: declared})
	for name, d := range declared {
		if d.Source.Ref == "" || reflect.DeepEqual(before.declared[name], d) {
			continue
		}
		ctx, leave, err := y.enter(context.Background())
		if err != nil {
			return // the server ends
		}
		go func() {
			defer leave()
			y.apply(ctx, name, d)
		}()
	}
}

// apply makes an app be as it is declared now.
func (y *Manager) apply(ctx context.Context, name string, d config.App) {
	a, err := y.find(core.DefaultWorkspaceID, name)
	if err != nil {
		y.installMissing(ctx, name, d)
		return
	}
	if err := a.take(ctx); err != nil {
		return // it was removed, or the server ends
	}
	if y.unchanged(ctx, declaredOrder(name, d), a.now.Load().record) {
		a.give()
		return
	}
	if err := a.endFor(ctx); err != nil {
		a.log.Error("An app was ended to be replaced by what is declared now, but not all of its processes have ended", "error", err)
	}
	y.bringUpToDate(ctx, a, d)
}
