package apps

import (
	"context"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestAReloadReplacesOnlyAppsWhoseDeclarationChanged(t *testing.T) {
	blue := byPath(bundleDir(t, "@test/other", modeNormal, nil))
	green := blue
	blue.Env, green.Env = map[string]core.Secret{"COLOUR": "blue"}, map[string]core.Secret{"COLOUR": "green"}
	same := byPath(bundleDir(t, "@test/same", modeNormal, nil))
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), declare(map[string]config.App{"same": same, "other": blue}))
	open(t, y)
	running := func(name string) instance.Instance {
		for {
			if a, err := y.find(ws, name); err == nil && a.now.Load().state == core.StateRunning {
				return a.now.Load().instance
			}
			wait(t.Context(), 5*time.Millisecond)
		}
	}
	kept, replaced := running("same"), running("other")

	y.Reconfigure(nil, map[string]config.App{
		"same": same, "other": green, "fresh": byPath(bundleDir(t, "@test/fresh", modeNormal, nil)),
	})
	<-replaced.Done()
	running("other")
	running("fresh")
	colour, _ := look(t, y, "other").env("COLOUR")
	expect(t, "the new value", colour, "green")
	if running("same") != kept {
		t.Error("an app whose declaration did not change was restarted")
	}

	fresh := running("fresh")
	smaller := same
	smaller.Sandbox = &config.Sandbox{Limits: sandbox.Limits{OpenFiles: 100}}
	y.Reconfigure(nil, map[string]config.App{"same": smaller, "other": green, "fresh": {Sandbox: smaller.Sandbox}, "missing": {Sandbox: smaller.Sandbox}})
	<-kept.Done()
	<-fresh.Done()
	again := running("same")
	expect(t, "the limit of an app whose sandbox settings changed", y.sandboxOf(interact.AppRef{Workspace: ws, Name: "same"}).Limits.OpenFiles, 100)
	running("fresh")
	y.Reconfigure(nil, map[string]config.App{"same": smaller, "other": green, "fresh": {Sandbox: smaller.Sandbox, Protected: true}})
	y.work.Wait()
	if running("same") != again {
		t.Error("an app whose sandbox settings did not change was restarted")
	}
	y.Reconfigure(nil, map[string]config.App{"same": same, "other": green})
	<-again.Done()
	running("same")

	if _, err := y.Stop(t.Context(), ws, "other"); err != nil {
		t.Fatal(err)
	}
	y.Reconfigure(nil, map[string]config.App{"same": same, "other": blue})
	y.work.Wait()
	expect(t, "a stopped app whose declaration changed", state(t, y, "other"), core.StateStopped)
	if _, err := y.Start(t.Context(), ws, "other"); err != nil {
		t.Fatal(err)
	}
	colour, _ = look(t, y, "other").env("COLOUR")
	expect(t, "the value of the later declaration", colour, "blue")
	if _, err := y.App(ws, "fresh"); err != nil {
		t.Errorf("an app that is no longer declared is gone: %v", err)
	}
	if err := y.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	y.Reconfigure(nil, map[string]config.App{"late": same}) // a closed manager starts nothing
}
