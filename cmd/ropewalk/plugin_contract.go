package main

import (
	"context"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
)

// runProtocol checks what every plugin promises whatever its kind.
func (t *trial) runProtocol(ctx context.Context, r *report) error {
	settings, end, err := t.goodSettings()
	if err != nil {
		return err
	}
	defer end()
	subject := protocoltest.Subject{Path: t.plugin.Path, Kind: t.who.Kind, Settings: settings, Probe: t.kits()[t.who.Kind].probe}
	for name, value := range config.HostEnvironment().Only(t.passEnv...) {
		subject.Env = append(subject.Env, name+"="+value)
	}
	runChecks(ctx, r, protocoltest.Checks(), subject)
	return nil
}

// afterwards are checks of what shows only when the kit of the kind has run.
func afterwards() []kit.Check[*trial] {
	return []kit.Check[*trial]{{Name: "its process lived through every check", Run: livedThrough}}
}

func livedThrough(_ context.Context, t *trial) error {
	if t.restarts > 0 {
		return kit.Failf("the plugin's process ended while it was in use, and was replaced %d times; run with --verbose to see what it says", t.restarts)
	}
	return nil
}
