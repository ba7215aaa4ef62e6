package main

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/protocoltest"
)

// runProtocol checks the requirements for every plugin, whatever its kind.
func (t *trial) runProtocol(ctx context.Context, r *report) error {
	settings, end, err := t.validSettings()
	if err != nil {
		return err
	}
	defer end()
	subject := protocoltest.Subject{Path: t.plugin.Path, Kind: t.who.Kind, Settings: settings, Probe: t.kits()[t.who.Kind].probe}
	for name, value := range config.HostEnvironment().Only(t.passEnv...) {
		subject.Env = append(subject.Env, name+"="+value)
	}
	judge(ctx, r, protocoltest.Properties(), t.kit, subject)
	return nil
}

// survived checks, after the kind's own kit, that the process never died: every kind's contract requires calls to return.
func survived() kit.Property[*trial] {
	const answered = "A call that has not returned by its deadline is of no use to the server"
	return kit.Property[*trial]{Name: "its process survived everything", Sentences: []string{answered}, Try: func(_ context.Context, _ *kit.Trial, t *trial) {
		if t.restarts > 0 {
			kit.Reject(fmt.Sprintf("its process exited while it was in use, and was replaced %d times, the first time because %s; --verbose shows what it wrote", t.restarts, t.ended), "a process that keeps running", answered)
		}
	}}
}
