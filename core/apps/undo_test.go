package apps

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// expectRemoved waits until there is nothing at path.
func expectRemoved(t *testing.T, path string) {
	t.Helper()
	testkit.Eventually(t, path+" was removed", func() bool { return !files.Exists(path) })
}

func uninstall(t *testing.T, y *Manager, name string) {
	t.Helper()
	if _, err := y.Uninstall(t.Context(), ws, name); err != nil {
		t.Fatal(err)
	}
}

func TestAnUninstallCanBeUndoneForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := record("notes", true)
		full.ID, full.Env = "first", map[string]core.Secret{"TOKEN": "s3cret"}
		full.Permissions = []core.Permission{{Access: core.Access{Kind: core.PermissionRead, Target: "/srv/notes"}, By: "usr_a"}}
		full.Tools = &core.ToolFilter{Exclude: []string{"remove"}}
		records := newMemoryRecords(full, record("idle", false))
		m := &memoryApp{tools: []string{"add"}}
		y, events := managerOf(t, m, records)
		open(t, y)
		synctest.Wait()
		for range 2 {
			uninstall(t, y, "notes")
			uninstall(t, y, "idle")
			_, called := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x"}})
			_, shown := y.App(ws, "notes")
			_, started := y.Start(t.Context(), ws, "notes")
			_, again := y.Uninstall(t.Context(), ws, "notes")
			for what, err := range map[string]error{"call": called, "show": shown, "start": started, "uninstall": again} {
				expect(t, "code of "+what+" after the uninstall", core.CodeOf(err), core.CodeNotFound)
			}
			expect(t, "apps after the uninstall", len(y.List(ws)), 0)
			expect(t, "tools after the uninstall", len(y.Tools(ws)), 0)
			expect(t, "instances after the uninstall", m.alive(), 0)
			wait(t.Context(), UndoFor-time.Second)
			for name, want := range map[string]core.State{"notes": core.StateRunning, "idle": core.StateStopped} {
				app, err := y.Restore(t.Context(), ws, name)
				if err != nil {
					t.Fatal(err)
				}
				expect(t, "state of "+name, app.Status, want)
			}
			expect(t, "tools after the undo", len(y.Tools(ws)), 1)
			wait(t.Context(), 2*time.Second) // past the minute in which the uninstall could be undone
		}
		if restored, err := records.Installation(t.Context(), ws, "notes"); err != nil || !reflect.DeepEqual(restored, full) {
			t.Errorf("restored %+v, %v, want %+v", restored, err, full)
		}
		expectEvents(t, events, "bundle.uninstalled", "bundle.uninstalled", "bundle.installed", "bundle.installed",
			"bundle.uninstalled", "bundle.uninstalled", "bundle.installed", "bundle.installed")

		_, err := y.Restore(t.Context(), ws, "notes")
		expect(t, "code for an app that is installed", core.CodeOf(err), core.CodeConflict)
		uninstall(t, y, "notes")
		wait(t.Context(), UndoFor)
		synctest.Wait()
		for _, name := range []string{"notes", "never"} {
			_, err = y.Restore(t.Context(), ws, name)
			expect(t, "code for "+name, core.CodeOf(err), core.CodeNotFound)
		}
		left, _ := records.Uninstalled(t.Context())
		expect(t, "remaining records", len(left), 0)
	})
}

func TestInstallingAnotherAppUnderTheSameNameRulesOutTheUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := remoteRecord("notes", true)
		old.ID = "first"
		records := newMemoryRecords(old)
		y, _ := managerOf(t, &memoryApp{}, records)
		open(t, y)
		synctest.Wait()
		uninstall(t, y, "notes")
		if _, err := y.Install(t.Context(), ws, source.Request{URL: "nowhere"}); err == nil {
			t.Error("an app was installed from an invalid URL")
		}
		if _, err := y.Restore(t.Context(), ws, "notes"); err != nil {
			t.Errorf("an undo after an install that failed early: %v", err)
		}
		uninstall(t, y, "notes")
		if _, err := y.Install(t.Context(), ws, notesByURL()); err != nil {
			t.Fatal(err)
		}
		_, err := y.Restore(t.Context(), ws, "notes")
		expect(t, "code while another app is installed", core.CodeOf(err), core.CodeConflict)
		wait(t.Context(), UndoFor+time.Second)
		now, err := records.Installation(t.Context(), ws, "notes")
		expect(t, "the other app is still installed", err == nil && now.ID != old.ID, true)
		left, _ := records.Uninstalled(t.Context())
		expect(t, "remaining records", len(left), 0)
	})
}

func TestAnUndoAppliesToAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		a, b, c := h.replica(t), h.replica(t), h.replica(t)
		if _, err := a.Install(t.Context(), ws, notesByURL()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.seat.deaf = true // it does not know about the uninstall
		uninstall(t, a.Manager, "notes")
		if app, err := b.Restore(t.Context(), ws, "notes"); err != nil || app.Status != core.StateRunning {
			t.Fatalf("%+v, %v", app, err)
		}
		synctest.Wait()
		for name, r := range map[string]*memoryReplica{"a": a, "b": b, "c": c} {
			expect(t, "state on "+name, state(t, r.Manager, "notes"), core.StateRunning)
			expect(t, "instances on "+name, r.app.alive(), 1)
		}
		wait(t.Context(), UndoFor+time.Second)
		for name, r := range map[string]*memoryReplica{"a": a, "b": b, "c": c} {
			expect(t, "state after the minute on "+name, state(t, r.Manager, "notes"), core.StateRunning)
		}
		uninstall(t, a.Manager, "notes")
		synctest.Wait()
		if err := a.Close(context.Background()); err != nil { // another server has to finish it
			t.Fatal(err)
		}
		wait(t.Context(), UndoFor+time.Second)
		left, _ := h.Uninstalled(t.Context())
		expect(t, "remaining records", len(left), 0)
	})
}

func TestUndoingAnUninstallRestoresTheFilesEvenAfterARestart(t *testing.T) {
	home, records := t.TempDir(), newMemoryRecords()
	y, _ := realManager(t, home, records, nil)
	install(t, y, source.Request{Path: bundleFile(t, "@test/notes", modeNormal, nil)})
	dir := look(t, y, "notes").Dir
	layer := filepath.Join(home, "apps", "notes", "layer", "0")
	data := filepath.Join(home, "apps", "notes", "data", "kept.txt")
	for _, path := range []string{filepath.Join(layer, "upper", "written.txt"), data} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uninstall(t, y, "notes")
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, _ := realManager(t, home, records, nil)
	open(t, again)
	expect(t, "apps after the restart", len(again.List(ws)), 0)
	if _, err := again.Restore(t.Context(), ws, "notes"); err != nil {
		t.Fatal(err)
	}
	expect(t, "directory", runs(t, again, "notes").Dir, dir)
	for _, path := range []string{layer, data} {
		expect(t, path+" is there", files.Exists(path), true)
	}
	uninstall(t, again, "notes")
	if err := again.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for k, r := range records.uninstalled { // the minute has passed
		r.UndoUntil = time.Now()
		records.uninstalled[k] = r
	}
	late, _ := realManager(t, home, records, nil)
	open(t, late)
	_, err := late.Restore(t.Context(), ws, "notes")
	expect(t, "code after the minute", core.CodeOf(err) == core.CodeNotFound || core.CodeOf(err) == core.CodeConflict, true)
	expectRemoved(t, filepath.Join(home, "apps", "notes", "bundle"))
	expectRemoved(t, filepath.Dir(layer))
	expect(t, "data is there", files.Exists(data), true)
}
