package apps

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// runs waits until an app is running, and returns its environment as the app sees it. If the app is being replaced, it
// returns the environment of the new one.
func runs(t *testing.T, y *Manager, name string) (i inside) {
	t.Helper()
	if !testkit.Within(time.Minute, func() bool {
		a, err := y.App(ws, name)
		if err != nil || a.Status != core.StateRunning {
			return false
		}
		text, err := callTool(t, y, name, "inside", "")
		return err == nil && json.Unmarshal([]byte(text), &i) == nil
	}) {
		t.Fatalf("app %s is not running: %+v", name, y.List(ws))
	}
	return i
}

func expectIn(t *testing.T, dir, home string) {
	t.Helper()
	if !strings.HasPrefix(dir, filepath.Join(home, "apps")+string(os.PathSeparator)) {
		t.Errorf("the app runs in %s, which is not in the home %s", dir, home)
	}
}

func TestAnAppInstalledOnOneServerRunsOnAllOfThem(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	for name, c := range map[string]struct {
		request func(t *testing.T) (r source.Request, gone string)
		options func(*Options)
	}{
		"a directory": {request: func(t *testing.T) (source.Request, string) {
			dir := bundleDir(t, "@test/notes", modeNormal, nil)
			if err := os.Symlink("manifest.json", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			return source.Request{Path: dir}, dir
		}},
		"a file": {request: func(t *testing.T) (source.Request, string) {
			file := bundleFile(t, "@test/notes", modeNormal, nil)
			return source.Request{Path: file}, file
		}},
		"a registry that only one server has": {
			request: func(*testing.T) (source.Request, string) { return source.Request{Name: pkg.Name}, "" },
			options: with(source.NamedRegistry{Name: "has", Registry: memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub()
			if c.options == nil {
				c.options = func(*Options) {}
			}
			homes := []string{t.TempDir(), t.TempDir(), t.TempDir()}
			a, _ := realManager(t, homes[0], nil, h.joins(c.options))
			b, events := realManager(t, homes[1], nil, h.joins(func(o *Options) { o.UndoFor = time.Millisecond }))
			open(t, a)
			open(t, b)
			request, gone := c.request(t)
			install(t, a, request)
			if err := os.RemoveAll(gone); err != nil {
				t.Fatal(err)
			}
			expectIn(t, runs(t, a, "notes").Dir, homes[0])
			on := runs(t, b, "notes")
			expectIn(t, on.Dir, homes[1])
			late, _ := realManager(t, homes[2], nil, h.joins()) // a server that joins later
			open(t, late)
			expectIn(t, runs(t, late, "notes").Dir, homes[2])

			if _, err := a.Uninstall(t.Context(), ws, "notes"); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "the other server has no app", func() bool { return len(b.List(ws)) == 0 })
			expectGone(t, on.PID)
			expectRemoved(t, filepath.Join(homes[1], "apps", "notes", "bundle"))
			expect(t, "the data is there", files.Exists(filepath.Join(homes[1], "apps", "notes", "data")), true)
			expectEvents(t, events)
		})
	}
}

func TestFilesInstalledBeforeJoiningAClusterAreShared(t *testing.T) {
	for name, path := range map[string]string{
		"a directory": bundleDir(t, "@test/notes", modeNormal, nil), "a file": bundleFile(t, "@test/notes", modeNormal, nil),
	} {
		t.Run(name, func(t *testing.T) {
			home, alone := t.TempDir(), newMemoryRecords()
			y, _ := realManager(t, home, alone, nil)
			install(t, y, source.Request{Path: path})
			if err := y.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			h := newHub()
			h.memoryRecords = alone
			elsewhere := t.TempDir()
			other, _ := realManager(t, elsewhere, nil, h.joins())
			open(t, other)
			again, _ := realManager(t, home, nil, h.joins())
			open(t, again)
			runs(t, again, "notes")
			before := runs(t, other, "notes") // it finds a directory too, since both servers are on one machine
			if _, err := again.Stop(t.Context(), ws, "notes"); err != nil {
				t.Fatal(err)
			}
			expectGone(t, before.PID) // the other server stops it too
			if _, err := again.Start(t.Context(), ws, "notes"); err != nil {
				t.Fatal(err)
			}
			expectIn(t, look(t, again, "notes").Dir, home)
			expectIn(t, runs(t, other, "notes").Dir, elsewhere)
		})
	}
}

func TestAChangedBundleIsAlsoReplacedOnServersThatDoNotDeclareIt(t *testing.T) {
	dir := bundleDir(t, "@test/notes", modeNormal, nil)
	h := newHub()
	d := map[string]config.App{"mine": byPath(dir)}
	homes := []string{t.TempDir(), t.TempDir()}
	b, _ := realManager(t, homes[1], nil, h.joins())
	open(t, b)
	start := func() *Manager {
		a, _ := realManager(t, homes[0], nil, h.joins(declare(d)))
		open(t, a)
		runs(t, a, "mine")
		return a
	}
	a := start()
	first := runs(t, b, "mine")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = start() // nothing changed
	expect(t, "the process on the other server", runs(t, b, "mine").PID, first.PID)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more.txt"), []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	start()
	testkit.Eventually(t, "the new file is on the other server", func() bool {
		return files.Exists(filepath.Join(runs(t, b, "mine").Dir, "more.txt"))
	})
	expectGone(t, first.PID)
	expectRemoved(t, first.Dir)
}

func TestAVirtualEnvironmentIsReinstalledAtTheRecordedVersion(t *testing.T) {
	pkg := registry.Package{Name: "io.test/notes", Version: "1.0.0", Kind: registry.KindPyPI, Identifier: "test-notes", IdentifierVersion: "1.0.0"}
	known := map[string]registry.Package{pkg.Name: pkg}
	uv := fakeUV(t)
	has := with(source.NamedRegistry{Name: "has", Registry: memoryRegistry{packages: known}})
	finds := func(o *Options) { o.HostEnv["PATH"] = uv + ":" + o.HostEnv["PATH"] }
	h := newHub()
	homes := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	a, _ := realManager(t, homes[0], nil, h.joins(has, finds))
	b, _ := realManager(t, homes[1], nil, h.joins(has, finds))
	open(t, a)
	open(t, b)
	install(t, a, source.Request{Name: pkg.Name})
	runs(t, b, "notes")
	r, _ := h.get(ws, "notes")
	expect(t, "files that are kept", r.Files, "")
	known[pkg.Name] = registry.Package{Name: pkg.Name, Version: "1.0.0", Kind: registry.KindPyPI, Identifier: "evil", IdentifierVersion: "1.0.0"}
	late, events := realManager(t, homes[2], nil, h.joins(has, finds))
	open(t, late)
	if err := events.wait(t.Context(), "bundle.dead", 1); err != nil {
		t.Fatal(err)
	}
	text := events.all()[len(events.all())-1].Data.(core.BundleDead).Message
	if !strings.Contains(text, "the registry now has a different bundle for io.test/notes 1.0.0") {
		t.Errorf("it died with %q", text)
	}
}

func TestIncompleteFilesAreNotExecuted(t *testing.T) {
	h := newHub()
	y, _ := realManager(t, t.TempDir(), nil, h.joins())
	dir := filepath.Join(source.LayoutOf(y.o.Home, ws).BundlesDir("notes"), "0123456789abcdef")
	r := core.Installation{Workspace: ws, Name: "notes", Dir: dir, Source: core.Source{Kind: core.SourcePath, Ref: "/nowhere"}}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(incompleteMark(dir), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	err := y.files.Provide(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "uninstall it and install it again") {
		t.Errorf("an incomplete bundle: %v", err)
	}
	if err := os.Remove(incompleteMark(dir)); err != nil {
		t.Fatal(err)
	}
	if err := y.files.Provide(t.Context(), r); err != nil {
		t.Errorf("a complete bundle: %v", err)
	}
	r.Dir, r.Files = dir+"0", strings.Repeat("0", 64)
	h.files[r.Files] = []byte("a file that someone else wrote")
	if err := y.files.Provide(t.Context(), r); err == nil || files.Exists(r.Dir) {
		t.Errorf("files that have changed: %v", err)
	}
}

// fakeUV returns a directory with a uv whose virtual environments contain the bundle as test-notes.
func fakeUV(t *testing.T) string {
	t.Helper()
	return installer(t, "uv", `if [ "$1" = venv ]; then mkdir -p "$3/bin"; echo > "$3/pyvenv.cfg"; else cat > "$(dirname "$7")/test-notes" <<'END'
#!/bin/sh
exec "`+selfPath(t)+`" `+bundleArg+` `+modeNormal+`
END
chmod +x "$(dirname "$7")/test-notes"; fi`)
}

func TestFilesNotYetOnTheDiskAreUnpackedAgainAfterAReboot(t *testing.T) {
	h := newHub()
	a, _ := realManager(t, t.TempDir(), nil, h.joins())
	open(t, a)
	install(t, a, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	r, _ := h.get(ws, "notes")
	expectRemoved(t, incompleteMark(r.Dir)) // once the files are on the disk
	manifest := filepath.Join(r.Dir, "manifest.json")
	for name, c := range map[string]struct {
		mark  string
		again bool
	}{
		"since the current boot":     {bootID(), bootID() == ""},
		"since an earlier boot":      {"another", true},
		"started but never finished": {"", true},
	} {
		if err := errors.Join(os.WriteFile(manifest, nil, 0o600), os.WriteFile(incompleteMark(r.Dir), []byte(c.mark), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := a.files.Provide(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.again {
			expectRemoved(t, incompleteMark(r.Dir))
		}
		if info, err := os.Stat(manifest); err != nil || info.Size() > 0 != c.again {
			t.Errorf("%s: unpacked again is %v, %v, want %v", name, info.Size() > 0, err, c.again)
		}
	}
}

// incompleteMark returns the path of the file next to a bundle's directory that marks it as incomplete, or as complete
// only until the machine restarts (package files).
func incompleteMark(dir string) string { return dir + ".unready" }

// bootID identifies the current boot of the machine. It is "" if the system does not provide an ID.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
}
