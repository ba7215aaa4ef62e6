package apps

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// tamper changes one byte in a file of an installed app.
func tamper(t *testing.T, records *memoryRecords, app string) {
	t.Helper()
	r, _ := records.get(ws, app)
	path := filepath.Join(r.Dir, "manifest.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-1] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnAppWhoseFilesWereChangedIsNotStarted(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}
	records, home := newMemoryRecords(), t.TempDir()
	y, _ := realManager(t, home, records, with(source.NamedRegistry{Name: "packages", Registry: packages}))
	install(t, y, source.Request{Name: pkg.Name})
	tamper(t, records, "notes")

	_, err := y.Restart(t.Context(), ws, "notes")
	if core.CodeOf(err) != core.CodeStartFailed || !strings.Contains(core.TextOf(err), "(manifest.json)") {
		t.Errorf("a restart returned %v", err)
	}
	again, events := realManager(t, home, records, with(source.NamedRegistry{Name: "packages", Registry: packages}))
	open(t, again)
	if err := events.wait(t.Context(), core.EventBundleDead, 1); err != nil {
		t.Fatal(err)
	}
	app, _ := again.App(ws, "notes")
	if app.Status != core.StateDead || !strings.Contains(app.LastError, "changed after it was installed (manifest.json)") {
		t.Errorf("after a restart of the server it is %s: %s", app.Status, app.LastError)
	}
	if all := again.All(); len(all) != 1 || len(all[ws]) != 1 || all[ws][0].LastError != app.LastError {
		t.Errorf("the apps of all workspaces are %+v", all)
	}
	if err := again.AwaitOffer(t.Context(), ws, "notes"); !strings.Contains(core.TextOf(err), "(manifest.json)") {
		t.Errorf("a call returned %v", err)
	}
	expect(t, "the events", strings.Join(events.texts(), ","), core.EventBundleDead)
	app, err = again.Update(t.Context(), ws, "notes", source.UpdateRequest{})
	if err != nil || app.Status != core.StateRunning {
		t.Errorf("after an update it is %+v: %v", app, err)
	}
}

func TestAStoppedAppShowsWhyItsLastStartFailed(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, with(source.NamedRegistry{Name: "packages", Registry: packages}))
	install(t, y, source.Request{Name: pkg.Name})
	if _, err := y.Stop(t.Context(), ws, "notes"); err != nil {
		t.Fatal(err)
	}
	tamper(t, records, "notes")
	if _, err := y.Start(t.Context(), ws, "notes"); core.CodeOf(err) != core.CodeStartFailed {
		t.Errorf("a start returned %v", err)
	}
	if app, _ := y.App(ws, "notes"); app.Status != core.StateStopped || !strings.Contains(app.LastError, "(manifest.json)") {
		t.Errorf("after a start that failed it is %s: %s", app.Status, app.LastError)
	}
	app, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{})
	if err != nil || app.Status != core.StateStopped || app.LastError != "" {
		t.Errorf("after an update it is %+v: %v", app, err)
	}
}

func TestAnAppThatWasInstalledWithoutHashesGetsThemAtItsNextStart(t *testing.T) {
	records, home := newMemoryRecords(), t.TempDir()
	y, _ := realManager(t, home, records, nil)
	install(t, y, source.Request{Path: bundleFile(t, "@test/notes", modeNormal, nil)})
	before, _ := records.get(ws, "notes")
	_, err := records.ChangeInstallation(t.Context(), ws, "notes", func(in *core.Installation) error {
		in.Sum = ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again, _ := realManager(t, home, records, nil)
	open(t, again)
	runs(t, again, "notes")
	after, _ := records.get(ws, "notes")
	expect(t, "the hash", after.Sum, before.Sum)
	if len(before.Sum) != 64 {
		t.Errorf("the hash is %q", before.Sum)
	}
}
