package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// treaty is what every plugin promises whatever its kind (proto/ropewalk/plugin/v1).
func treaty() []kit.Check[*trial] {
	return []kit.Check[*trial]{
		{Name: "it has a name, a version and the wire version that it was started with", Run: saysWhoItIs},
		{Name: "a setting that it has not is a problem that names it", Run: refusesUnknownSettings},
	}
}

// farewell is what shows only when the kit of the kind has run.
func farewell() []kit.Check[*trial] {
	return []kit.Check[*trial]{{Name: "its process lived through every check", Run: livedThrough}}
}

func saysWhoItIs(_ context.Context, t *trial) error {
	if t.who.Name == "" || t.who.Version == "" || !slices.Contains(t.who.ProtocolVersions, t.who.ProtocolVersion) {
		return kit.Failf("Info must give a name, a version and the wire versions, %d among them; it gave %q, %q and %d", t.who.ProtocolVersion, t.who.Name, t.who.Version, t.who.ProtocolVersions)
	}
	return nil
}

// unknownSetting is one that no plugin has.
const unknownSetting = "noPluginHasThisSetting"

func refusesUnknownSettings(ctx context.Context, t *trial) error {
	raw, end, err := t.goodSettings()
	if err != nil {
		return err
	}
	defer end()
	settings := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return kit.Failf("the settings must be an object: %w", err)
	}
	settings[unknownSetting] = json.RawMessage("true")
	if raw, err = json.Marshal(settings); err != nil {
		return err
	}
	running, err := t.open(ctx, raw)
	if err == nil {
		t.close(running)
		return kit.Failf("Configure must report a setting that the plugin has not; it took %q and reported nothing", unknownSetting)
	}
	wrong, ok := errors.AsType[*plugins.ConfigError](err)
	if !ok {
		return kit.Failf("wrong settings must be problems in the answer of Configure (status OK); it answered with the error %q", err)
	}
	if !slices.ContainsFunc(wrong.Problems, func(p plugins.Problem) bool { return p.Path == unknownSetting }) {
		return kit.Failf("one of the problems must have the path %q; they are: %v", unknownSetting, wrong.Problems)
	}
	return nil
}

func livedThrough(_ context.Context, t *trial) error {
	if t.restarts > 0 {
		return kit.Failf("the plugin's process ended while it was in use, and was replaced %d times; run with --verbose to see what it says", t.restarts)
	}
	return nil
}
