package chat

import (
	"context"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// ModelSettings returns the current models, and the configured providers sorted by name.
func (e *Engine) ModelSettings(ctx context.Context) (set core.ModelSettings, err error) {
	m := e.models.Load()
	if set.Default, err = e.currentModel(ctx, settingDefault, m.byDefault); err != nil {
		return core.ModelSettings{}, err
	}
	if set.Fast, err = e.currentModel(ctx, settingFast, m.fast); err != nil {
		return core.ModelSettings{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.providers)) {
		set.Providers = append(set.Providers, core.ModelProvider{Name: name, Usable: m.providers[name].usable})
	}
	return set, nil
}
