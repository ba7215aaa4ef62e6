package apps

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/plugins/registry"
)

// withKey returns manifest keys that make a bundle require a value.
func withKey() map[string]any {
	return map[string]any{"user_config": map[string]any{
		"key": map[string]any{"type": "string", "title": "Key", "description": "of the service", "required": true, "sensitive": true},
	}}
}

func TestAppDetailsContainNoValues(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	dir := bundleDir(t, "@test/notes", modeNormal, withKey())
	install(t, y, source.Request{Path: dir, Env: map[string]core.Secret{"key": "hunter2", "COLOUR": "blue"}})
	d, err := y.Details(ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "source", d.Source, SourceDetails{Kind: core.SourcePath, Ref: dir})
	expect(t, "the field", d.UserConfig["key"], ConfigField{Type: "string", Title: "Key", Description: "of the service", Required: true, Sensitive: true, IsSet: true})
	expect(t, "names of values", strings.Join(d.Env, " "), "COLOUR key")
	expect(t, "data path", d.DataPath, filepath.Join(home, "apps", "notes"))
	if raw, err := json.Marshal(d); err != nil || strings.Contains(string(raw), "hunter2") || d.Since == "" {
		t.Errorf("the details are %s (%v)", raw, err)
	}
}

func TestAppsAreReconfiguredWithoutAskingForStoredValuesAgain(t *testing.T) {
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, nil)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, withKey()), Env: map[string]core.Secret{"key": "hunter2", "OLD": "x"}})
	before := look(t, y, "notes").PID
	blue := "blue"
	if _, err := y.Configure(t.Context(), ws, "notes", Settings{Env: map[string]*string{"COLOUR": &blue, "OLD": nil}}); err != nil {
		t.Fatal(err)
	}
	r, _ := records.get(ws, "notes")
	if len(r.Env) != 2 || r.Env["key"] != "hunter2" || r.Env["COLOUR"] != "blue" {
		t.Errorf("there are %d values, among them %v", len(r.Env), r.Env["COLOUR"].Reveal())
	}
	if after := look(t, y, "notes").PID; after == before {
		t.Error("the app was not restarted")
	}
	_, err := y.Configure(t.Context(), ws, "notes", Settings{UserConfig: map[string]json.RawMessage{"key": json.RawMessage(`null`)}})
	expect(t, "removing a required value", core.CodeOf(err), core.CodeCredentialsRequired)
	_, err = y.Configure(t.Context(), ws, "notes", Settings{UserConfig: map[string]json.RawMessage{"other": json.RawMessage(`1`)}})
	expect(t, "a field that does not exist", core.CodeOf(err), core.CodeBadRequest)
}

func TestARestartedAppHasANewProcess(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	before := look(t, y, "notes").PID
	app, err := y.Restart(t.Context(), ws, "notes")
	if err != nil || app.Status != core.StateRunning || look(t, y, "notes").PID == before {
		t.Errorf("after a restart it is %+v (%v)", app, err)
	}
}

func TestProgressOfAnInstallationNamesTheAppAndNeverAPath(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}
	dir := bundleDir(t, "@test/local", modeNormal, nil)
	file := bundleFile(t, "@test/packed", modeNormal, nil)
	for _, c := range []struct {
		what    string
		request source.Request
		name    string
		stages  []string
	}{
		{"a name", source.Request{Name: pkg.Name}, "notes", []string{"resolving", "downloading", "installing", "starting"}},
		{"a chosen name", source.Request{Name: pkg.Name, ServerName: "Mine"}, "mine", []string{"resolving", "downloading", "installing", "starting"}},
		{"a directory", source.Request{Path: dir}, "local", []string{"starting"}},
		{"a file", source.Request{Path: file}, "packed", []string{"installing", "starting"}},
	} {
		home := t.TempDir()
		y, events := realManager(t, home, newMemoryRecords(), with(source.NamedRegistry{Name: "packages", Registry: packages}))
		install(t, y, c.request)
		var stages []string
		for _, p := range events.progress {
			stages = append(stages, p.Stage)
			if p.Name != c.name || strings.Contains(p.Message, dir) || strings.Contains(p.Message, file) {
				t.Errorf("%s: the progress is %+v", c.what, p)
			}
		}
		if !slices.Equal(stages, c.stages) {
			t.Errorf("%s: the stages are %q, want %q", c.what, stages, c.stages)
		}
	}
}

func TestAnUpdateKeepsDataAndRollsBackIfTheNewVersionDoesNotStart(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}
	home := t.TempDir()
	y, events := realManager(t, home, newMemoryRecords(), with(source.NamedRegistry{Name: "packages", Registry: packages}))
	install(t, y, source.Request{Name: pkg.Name})
	data := filepath.Join(home, "apps", "notes", "data", "kept")
	if err := os.WriteFile(data, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	publish := func(version, mode string) {
		t.Helper()
		file, err := os.ReadFile(bundleFile(t, pkg.Name, mode, map[string]any{"version": version}))
		if err != nil {
			t.Fatal(err)
		}
		next := pkg
		next.Version, next.SHA256, next.Size = version, sha256Of(file), int64(len(file))
		packages.packages[pkg.Name], packages.files[pkg.Name] = next, file
	}
	publish("2.0.0", modeDying)
	_, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{})
	if core.CodeOf(err) != core.CodeInstallFailed || !strings.Contains(core.TextOf(err), "version 1.2.3 is running again") {
		t.Errorf("an update that does not start returned %v", err)
	}
	if len(events.progress) == 0 || events.progress[len(events.progress)-1].Name != "notes" {
		t.Errorf("the progress is %+v", events.progress)
	}
	runs(t, y, "notes")
	app, _ := y.App(ws, "notes")
	expect(t, "version after the update that failed", app.Version, "1.2.3")
	publish("3.0.0", modeNormal)
	app, err = y.Update(t.Context(), ws, "notes", source.UpdateRequest{Version: "3.0.0"})
	if err != nil || app.Version != "3.0.0" || app.Status != core.StateRunning {
		t.Errorf("after the update it is %+v (%v)", app, err)
	}
	if all := events.all(); all[len(all)-1].Name != core.EventBundleStarted {
		t.Errorf("the last event of an update is %s", all[len(all)-1].Name)
	}
	if _, err := y.Update(t.Context(), ws, "notes", source.UpdateRequest{}); err != nil {
		t.Errorf("an update without a newer version returned %v", err)
	}
	if last := events.progress[len(events.progress)-1]; last.Stage != "unchanged" {
		t.Errorf("an update without a newer version ends with %+v", last)
	}
	if _, err := os.Stat(data); err != nil {
		t.Errorf("its data is gone: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(home, "apps", "notes", "bundle")); err != nil || len(left) != 2 { // a directory and its hashes
		t.Errorf("the remaining bundles are %v (%v)", left, err)
	}
}

func TestRequiredVariablesOfARegistrysMCPBPackageAreRequested(t *testing.T) {
	pkg, raw := mcpb(t, "@test/notes")
	pkg.Variables = []registry.Variable{{Name: "API_KEY", Required: true, Secret: true}, {Name: "COLOUR", Default: "blue"}}
	packages := memoryRegistry{packages: map[string]registry.Package{pkg.Name: pkg}, files: map[string][]byte{pkg.Name: raw}}
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, with(source.NamedRegistry{Name: "packages", Registry: packages}))
	_, err := y.Install(t.Context(), ws, source.Request{Name: pkg.Name})
	expect(t, "without the key", core.CodeOf(err), core.CodeCredentialsRequired)
	install(t, y, source.Request{Name: pkg.Name, Env: map[string]core.Secret{"API_KEY": "hunter2"}})
	r, _ := records.get(ws, "notes")
	expect(t, "the default", r.Env["COLOUR"], core.Secret("blue"))
}

func TestAnUploadedBundleIsInstalled(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	file, err := os.Open(bundleFile(t, "@test/notes", modeNormal, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	app, err := y.InstallUpload(t.Context(), ws, file, source.Request{ServerName: "Mine"})
	if err != nil || app.Name != "mine" || app.Status != core.StateRunning {
		t.Errorf("it is %+v (%v)", app, err)
	}
}

func TestAnUploadedAppIsReplacedByAnotherUploadAndKeepsItsSettings(t *testing.T) {
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, nil)
	upload := func(mode, version string, r source.Request) (core.App, error) {
		t.Helper()
		more := withKey()
		more["version"] = version
		file, err := os.Open(bundleFile(t, "@test/notes", mode, more))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		return y.InstallUpload(t.Context(), ws, file, r)
	}
	first, err := upload(modeNormal, "1.0.0", source.Request{Replace: true, Env: map[string]core.Secret{"key": "hunter2"}})
	if err != nil || first.Version != "1.0.0" {
		t.Fatalf("the first upload: %+v, %v", first, err)
	}
	before, _ := records.get(ws, "notes")

	_, err = upload(modeNormal, "1.1.0", source.Request{Env: map[string]core.Secret{"key": "other"}})
	known, _ := errors.AsType[*core.Error](err)
	if core.CodeOf(err) != core.CodeAlreadyInstalled || fmt.Sprint(known.Details) != "map[installed:1.0.0 name:notes offered:1.1.0]" {
		t.Errorf("without replace: %v, %+v", err, known)
	}
	second, err := upload(modeNormal, "1.1.0", source.Request{Replace: true})
	after, _ := records.get(ws, "notes")
	if err != nil || second.Version != "1.1.0" || second.Status != core.StateRunning || after.ID != before.ID || after.Env["key"] != "hunter2" {
		t.Errorf("another version: %+v, %v, the record is %+v", second, err, after)
	}
	if _, err := callTool(t, y, "notes", "echo", "still here"); err != nil {
		t.Error(err)
	}
	if _, err := upload(modeDying, "1.2.0", source.Request{Replace: true}); core.CodeOf(err) != core.CodeInstallFailed {
		t.Errorf("a version that does not start: %v", err)
	}
	if kept, _ := records.get(ws, "notes"); kept.Version != "1.1.0" || kept.Dir != after.Dir {
		t.Errorf("the record after it is %+v", kept)
	}
	install(t, y, source.Request{Path: bundleDir(t, "@test/other", modeNormal, nil)})
	if _, err := upload(modeNormal, "1.1.0", source.Request{ServerName: "other", Replace: true}); core.CodeOf(err) != core.CodeConflict {
		t.Errorf("an app from a path: %v", err)
	}
}

func TestAnUploadThatIsNotABundleIsABadRequest(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	whole, err := os.ReadFile(bundleFile(t, "@test/notes", modeNormal, nil))
	if err != nil {
		t.Fatal(err)
	}
	archive := func(name, text string) string {
		var b strings.Builder
		z := zip.NewWriter(&b)
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for what, file := range map[string]string{
		"nothing": "", "plain text": "not a bundle", "half an archive": string(whole[:len(whole)/2]), "an archive without a manifest": archive("readme.md", "x"),
		"a manifest that is not JSON": archive("manifest.json", "{"), "a manifest without a server": archive("manifest.json", `{"manifest_version":"0.3","name":"x","version":"1.0.0"}`),
	} {
		_, err := y.InstallUpload(t.Context(), ws, strings.NewReader(file), source.Request{})
		if core.CodeOf(err) != core.CodeBadRequest || !strings.HasPrefix(core.TextOf(err), "the file is not a usable bundle: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAPastedMCPServersObjectIsPlannedAndInstalled(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	definition, err := json.Marshal(map[string]any{"command": program, "args": []string{bundleArg, modeNormal}, "env": map[string]string{"KEY": "hunter2"}})
	if err != nil {
		t.Fatal(err)
	}
	request := source.ImportRequest{DryRun: true, MCPServers: map[string]json.RawMessage{
		"Notes": definition, "broken": json.RawMessage(`{}`), "gone": json.RawMessage(`{"command":"no-such-program"}`),
	}}
	for _, want := range []string{"planned", "installed", "exists"} {
		result, err := y.Import(t.Context(), ws, request)
		if err != nil || len(result.Servers) != 3 {
			t.Fatalf("%+v (%v)", result, err)
		}
		notes, broken, gone := result.Servers[0], result.Servers[1], result.Servers[2]
		if notes.Status != want || notes.Source != core.SourceCommand || want != "exists" && notes.ServerName != "notes" {
			t.Errorf("got %+v, want it %s", notes, want)
		}
		expect(t, "a broken definition", broken.Status+" "+broken.Error, "failed bad_request")
		expect(t, "a server whose program is missing", gone.Status+" "+gone.Error, "failed install_failed")
		if !strings.HasPrefix(gone.Message, `command: program not found: "no-such-program" is not on the server's search path: install it`) {
			t.Errorf("the message does not say what to do: %s", gone.Message)
		}
		request.DryRun = false
	}
	if text, err := callTool(t, y, "notes", "echo", "hello"); err != nil || text != "hello" {
		t.Errorf("echo: %q, %v", text, err)
	}
}

func TestTheLogOfAnAppCanBeReadAndFollowed(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	a, err := y.find(ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	path := a.layout().LogFile("notes")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	lines, more, err := y.Logs(t.Context(), ws, "notes", 1, true)
	if err != nil || len(lines) != 1 || lines[0].Text != "two" {
		t.Errorf("the log is %+v (%v)", lines, err)
	}
	if _, err := file.WriteString("three\n"); err != nil {
		t.Fatal(err)
	}
	expect(t, "the next line", (<-more).Text, "three")
	_, _, err = y.Logs(t.Context(), ws, "none", 1, false)
	expect(t, "an app that is not installed", core.CodeOf(err), core.CodeNotFound)
}

func sha256Of(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
