package apps

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func byPath(path string) config.App {
	return config.App{Source: core.Source{Kind: core.SourcePath, Ref: path}}
}

func declare(apps map[string]config.App) func(*Options) {
	return func(o *Options) { o.Configured = apps }
}

func TestADeclaredAppIsInstalledUnderItsNameWhenTheServerStarts(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	y, events := realManager(t, home, records, declare(map[string]config.App{
		"mine":    byPath(bundleFile(t, "@test/notes", modeNormal, nil)),
		"missing": byPath("/nowhere"),
		"dying":   byPath(bundleDir(t, "@test/dying", modeDying, nil)),
	}))
	open(t, y)
	if err := events.wait(t.Context(), "bundle.installed", 1); err != nil {
		t.Fatal(err)
	}
	app, err := y.App(ws, "mine")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "name in the manifest", app.BundleName, "@test/notes")
	expect(t, "status", app.Status, core.StateRunning)
	if err := events.wait(t.Context(), "bundle.crashed 1", 1); err != nil {
		t.Fatal(err) // an app that cannot be started is still installed
	}
	testkit.Eventually(t, "the other app could not be installed", func() bool { return len(failures(events)) > 0 })
	if failed := failures(events); len(failed) != 1 || failed[0].Name != "missing" || failed[0].Message == "" {
		t.Errorf("the events of the app that could not be installed are %+v", failed)
	}
	testkit.Eventually(t, "an app that could not be installed is shown as dead, with an error", func() bool {
		app, err := y.App(ws, "missing")
		return err == nil && app.Status == core.StateDead && app.LastError != ""
	})
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, later := realManager(t, home, records, declare(map[string]config.App{"mine": y.o.Configured["mine"]}))
	open(t, again)
	_, _ = callTool(t, again, "mine", "echo", "up") // waits for it
	for _, e := range later.all() {                 // the other app keeps dying
		crashed, isCrash := e.Data.(core.BundleCrashed)
		dead, isDeath := e.Data.(core.BundleDead)
		if (!isCrash || crashed.Name != "dying") && (!isDeath || dead.Name != "dying") {
			t.Errorf("a second start reports %+v", e.Event)
		}
	}
}

func TestADeclarationThatChangedReplacesTheApp(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	file := bundleFile(t, "@test/notes", modeNormal, nil)
	start := func(d config.App) (*Manager, inside) {
		y, _ := realManager(t, home, records, declare(map[string]config.App{"mine": d}))
		open(t, y)
		for {
			if a, err := y.App(ws, "mine"); err == nil && a.Status == core.StateRunning {
				return y, look(t, y, "mine")
			}
			wait(t.Context(), 5*time.Millisecond)
		}
	}
	y, first := start(byPath(file))
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	withEnv := byPath(file)
	withEnv.Env = map[string]core.Secret{"COLOUR": "blue"}
	y, second := start(withEnv)
	colour, _ := second.env("COLOUR")
	expect(t, "the new value", colour, "blue")
	expect(t, "the directory of the same bundle", second.Dir, first.Dir)
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(bundleFile(t, "@test/notes", modeNormal, map[string]any{"version": "2.0.0"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	y, third := start(withEnv)
	app, _ := y.App(ws, "mine")
	expect(t, "version", app.Version, "2.0.0")
	if third.Dir == first.Dir {
		t.Error("another bundle is in the first one's directory")
	}
	if _, err := os.Stat(first.Dir); !os.IsNotExist(err) {
		t.Errorf("the replaced bundle was not removed: %v", err)
	}
}

func TestAStoppedDeclaredAppStaysStopped(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	d := declare(map[string]config.App{"mine": byPath(bundleDir(t, "@test/notes", modeNormal, nil))})
	y, events := realManager(t, home, records, d)
	open(t, y)
	if err := events.wait(t.Context(), "bundle.installed", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Stop(t.Context(), ws, "mine"); err != nil {
		t.Fatal(err)
	}
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, _ := realManager(t, home, records, d)
	open(t, again)
	again.work.Wait()
	expect(t, "state", state(t, again, "mine"), core.StateStopped)
}

func TestAProtectedAppIsNotUninstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _ := managerOf(t, &memoryApp{}, newMemoryRecords(record("notes", true), record("other", true)))
		y.Reconfigure(nil, map[string]config.App{"notes": {Protected: true}, "other": {}})
		open(t, y)
		synctest.Wait()
		_, err := y.Uninstall(t.Context(), ws, "notes")
		expect(t, "code", core.CodeOf(err), core.CodeProtected)
		expect(t, "state", state(t, y, "notes"), core.StateRunning)
		if _, err := y.Stop(t.Context(), ws, "notes"); err != nil {
			t.Errorf("a protected app cannot be stopped: %v", err)
		}
		if _, err := y.Uninstall(t.Context(), ws, "other"); err != nil {
			t.Errorf("an app that is not protected cannot be uninstalled: %v", err)
		}
		if _, err := y.Install(t.Context(), "ws_b", source.Request{URL: "http://host.test/notes"}); err != nil {
			t.Fatal(err)
		}
		if _, err := y.Uninstall(t.Context(), "ws_b", "notes"); err != nil {
			t.Errorf("protection affects another workspace: %v", err)
		}
	})
}

func TestFilesOfAnInterruptedInstallAreRemovedAtOpen(t *testing.T) {
	home := t.TempDir()
	kept := record("kept", false)
	kept.Dir = filepath.Join(home, "apps", "kept", "bundle", "aaaa")
	orphans := []string{
		"apps/.incoming/bundle-1/x", "apps/half/bundle/bbbb/x", "apps/kept/bundle/cccc/x", "workspaces/ws_b/apps/half/bundle/dddd/x",
		"apps/half/layer/0/upper/x", "workspaces/ws_b/apps/kept/layer/0/upper/x",
	}
	stay := []string{"apps/kept/bundle/aaaa/x", "apps/kept/layer/0/upper/x", "apps/kept/data/x", "apps/half/data/x", "apps/half/logs/x"}
	for _, file := range append(append([]string{}, orphans...), stay...) {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	y := New(Options{Home: home, Records: newMemoryRecords(kept), Events: newMemoryEvents()})
	open(t, y)
	defer func() { _ = y.Close(t.Context()) }()
	for _, file := range orphans {
		if _, err := os.Stat(filepath.Join(home, filepath.Dir(file))); !os.IsNotExist(err) {
			t.Errorf("%s was not removed", file)
		}
	}
	for _, file := range stay {
		if _, err := os.Stat(filepath.Join(home, file)); err != nil {
			t.Errorf("%s is gone", file)
		}
	}
	expect(t, "apps", len(y.List(ws)), 1)
}

func TestTheBundlesOfAMovedHomeAreFound(t *testing.T) {
	home, records := filepath.Join(t.TempDir(), "before"), newMemoryRecords()
	y, _ := realManager(t, home, records, nil)
	install(t, y, source.Request{Path: bundleFile(t, "@test/notes", modeNormal, nil)})
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "after")
	if err := os.Rename(home, moved); err != nil {
		t.Fatal(err)
	}
	again, _ := realManager(t, moved, records, nil)
	open(t, again)
	if text, err := callTool(t, again, "notes", "echo", "still here"); err != nil || text != "still here" {
		t.Errorf("echo: %q, %v", text, err)
	}
}

func TestAManagerWhoseRecordsCannotBeReadIsNotOpened(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "apps", "kept", "bundle", "aaaa")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	y := New(Options{Home: home, Records: unreadable{newMemoryRecords()}, Events: newMemoryEvents()})
	if err := y.Open(t.Context()); err == nil {
		t.Error("the manager was opened")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a bundle was removed although the installed apps are unknown: %v", err)
	}
}

// unreadable holds records on a disk that cannot be read.
type unreadable struct{ *memoryRecords }

func (unreadable) Installations(context.Context) ([]core.Installation, error) {
	return nil, os.ErrPermission
}
