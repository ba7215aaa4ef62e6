package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// realManager returns a manager with real processes in the given home. change may be nil.
func realManager(t testing.TB, home string, records *memoryRecords, change func(*Options)) (*Manager, *memoryEvents) {
	t.Helper()
	events := newMemoryEvents()
	o := Options{
		Home: home, Records: records, Events: events, Grace: time.Second,
		HostEnv: map[string]string{"PATH": getenv("PATH"), "HOME": "/home/somebody", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC"},
	}
	if change != nil {
		change(&o)
	}
	y := New(o)
	t.Cleanup(func() {
		if err := y.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return y, events
}

func install(t *testing.T, y *Manager, r source.Request) core.App {
	t.Helper()
	app, err := y.Install(t.Context(), ws, r)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// callTool calls a tool and returns the text of its result.
func callTool(t *testing.T, y *Manager, server, tool, text string) (string, error) {
	t.Helper()
	raw, err := y.Call(t.Context(), ws, server, &interact.Call{Request: link.Request{Method: "tools/call", Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":{"text":%q}}`, tool, text))}})
	if err != nil {
		return "", err
	}
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		return "", fmt.Errorf("result %s: %w", raw, err)
	}
	return result.Content[0].Text, nil
}

func look(t *testing.T, y *Manager, server string) inside {
	t.Helper()
	text, err := callTool(t, y, server, "inside", "")
	if err != nil {
		t.Fatal(err)
	}
	var i inside
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestABundleDirectoryIsUsedInPlace(t *testing.T) {
	home := t.TempDir()
	dir := bundleDir(t, "@test/Notes_App", modeNormal, nil)
	y, events := realManager(t, home, newMemoryRecords(), nil)
	app := install(t, y, source.Request{Path: dir})
	want := core.App{Name: "notes-app", BundleName: "@test/Notes_App", Version: "1.2.3", Status: core.StateRunning, Type: "plain", ToolCount: 5}
	expectApp(t, "result", app, want)
	listed := y.List(ws)[0]
	if listed.Sandbox == nil || listed.Sandbox.Level != "none" {
		t.Errorf("list: the sandbox is %+v, want none without settings", listed.Sandbox)
	}
	listed.Sandbox = nil
	expectApp(t, "list", listed, want)
	if text, err := callTool(t, y, "notes-app", "echo", "hello"); err != nil || text != "hello" {
		t.Errorf("echo: %q, %v", text, err)
	}
	expectEvents(t, events, "bundle.installed")
	said, _ := events.all()[0].Data.(core.BundleInstalled)
	expect(t, "event", said, core.BundleInstalled{Name: "notes-app", BundleName: "@test/Notes_App", Status: core.StateRunning})
	_, err := y.Install(t.Context(), ws, source.Request{Path: dir})
	expect(t, "code of a second install", core.CodeOf(err), core.CodeAlreadyInstalled)
	other := bundleDir(t, "@others/notes-app", modeNormal, nil)
	_, err = y.Install(t.Context(), ws, source.Request{Path: other})
	expect(t, "code of another bundle with the same short name", core.CodeOf(err), core.CodeAlreadyInstalled)
}

func TestABundleFileIsUnpackedAndRemovedWithTheAppWhileItsDataStays(t *testing.T) {
	home := t.TempDir()
	y, events := realManager(t, home, newMemoryRecords(), func(o *Options) { o.UndoFor = time.Millisecond })
	app := install(t, y, source.Request{Path: bundleFile(t, "@test/notes", modeNormal, nil)})
	i := look(t, y, app.Name)
	data := filepath.Join(home, "apps", "notes", "data")
	expect(t, "parent of the working directory", filepath.Dir(i.Dir), filepath.Join(home, "apps", "notes", "bundle"))
	if err := os.WriteFile(filepath.Join(data, "kept.txt"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := y.Uninstall(t.Context(), ws, app.Name)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "data path", path, filepath.Join(home, "apps", "notes"))
	expectGone(t, i.PID)
	expectEvents(t, events, "bundle.installed", "bundle.uninstalled")
	expect(t, "apps", len(y.List(ws)), 0)
	expectRemoved(t, filepath.Join(home, "apps", "notes", "bundle"))
	if _, err := os.Stat(filepath.Join(data, "kept.txt")); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(home, "apps", ".incoming")); len(left) > 0 {
		t.Errorf("left in incoming: %v", left)
	}
}

func TestABundleSeesOnlyTheAllowedPathsOfTheHost(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), func(o *Options) {
		for n := range 50 {
			o.HostEnv[fmt.Sprintf("CANARY_%d", n)] = "canary"
		}
		o.HostEnv["SERVICE_API_KEY"] = "canary"
		o.HostEnv["NODE_OPTIONS"] = "canary"
	})
	t.Setenv("CANARY_OF_THE_PROCESS", "canary")
	app := install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil), Env: map[string]core.Secret{"MY_SETTING": "as given; $(date) 'q'"}})
	i := look(t, y, app.Name)
	data := filepath.Join(home, "apps", "notes", "data")
	want := map[string]string{
		"PATH": getenv("PATH"), "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC", "HOME": data, "TMPDIR": filepath.Join(data, "tmp"),
		instance.DataDirVariable: data, "MY_SETTING": "as given; $(date) 'q'",
	}
	for name, value := range want {
		if got, _ := i.env(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if len(i.Env) != len(want) || strings.Contains(strings.Join(i.Env, "\n"), "canary") {
		t.Errorf("the bundle sees more than it should: %q", i.Env)
	}
	for _, name := range []string{"LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH", "PATH", "HOME", "BASH_ENV"} {
		_, err := y.Install(t.Context(), ws, source.Request{Path: bundleDir(t, "@test/other", modeNormal, nil), Env: map[string]core.Secret{name: "x"}})
		expect(t, "code for "+name, core.CodeOf(err), core.CodeBadRequest)
		if err != nil && !strings.Contains(core.TextOf(err), name) {
			t.Errorf("the key %s is not named: %v", name, err)
		}
	}
}

func TestEveryWorkspaceHasItsOwnDirectories(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	if _, err := y.Install(t.Context(), "ws_b", source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)}); err != nil {
		t.Fatal(err)
	}
	path, err := y.Uninstall(t.Context(), "ws_b", "notes")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "data path", path, filepath.Join(home, "workspaces", "ws_b", "apps", "notes"))
}

func TestRequiredValuesThatAreMissingAreListed(t *testing.T) {
	more := map[string]any{
		"server": map[string]any{"type": "binary", "entry_point": "server", "mcp_config": map[string]any{
			"command": selfPath(t), "args": []string{bundleArg, modeNormal}, "env": map[string]string{"API_KEY": "${user_config.api_key}"},
		}},
		"user_config": map[string]any{
			"api_key": map[string]any{"type": "string", "title": "API key", "description": "of the service", "required": true, "sensitive": true},
			"city":    map[string]any{"type": "string", "title": "City", "description": "where", "required": true, "default": "Riga"},
		},
	}
	dir := bundleDir(t, "@test/weather", modeNormal, more)
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	_, err := y.Install(t.Context(), ws, source.Request{Path: dir})
	expect(t, "code", core.CodeOf(err), core.CodeCredentialsRequired)
	raw, _ := json.Marshal(errorOf(t, err).Details)
	expect(t, "details", string(raw), `{"missing":[{"name":"api_key","title":"API key","description":"of the service","sensitive":true}]}`)
	if left, _ := os.ReadDir(filepath.Join(home, "apps")); len(left) > 0 {
		t.Errorf("the refused install left something behind: %v", left)
	}
	for _, name := range []string{"api_key", "API_KEY"} {
		install(t, y, source.Request{Path: dir, Env: map[string]core.Secret{name: "s3cret"}})
		if got, _ := look(t, y, "weather").env("API_KEY"); got != "s3cret" {
			t.Errorf("API_KEY is %q when given as %s", got, name)
		}
		if _, err := y.Uninstall(t.Context(), ws, "weather"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnInstallThatFailsSaysWhyAndLeavesNothingBehind(t *testing.T) {
	with := func(command string) map[string]any {
		return map[string]any{"server": map[string]any{"type": "node", "entry_point": "x.js", "mcp_config": map[string]any{"command": command, "args": []string{}}}}
	}
	empty := t.TempDir()
	broken := filepath.Join(t.TempDir(), "broken.mcpb")
	if err := os.WriteFile(broken, []byte("not a zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		says       []string
	}{
		{"a path that does not exist", filepath.Join(empty, "nowhere"), []string{"path", "no such file"}},
		{"a directory without a manifest", empty, []string{"manifest.json"}},
		{"a file that is not a bundle", broken, []string{"archive"}},
		{"a command that is missing", bundleDir(t, "@test/x", modeNormal, with("no-such-command-here")), []string{"no-such-command-here", "PATH"}},
		{"a process that exits", bundleDir(t, "@test/x", modeDying, nil), []string{"status 7", "cannot go on"}},
		{"a bundle file whose process exits", bundleFile(t, "@test/x", modeDying, nil), []string{"status 7", "cannot go on"}},
		{"a bundle that refuses", bundleDir(t, "@test/x", modeGrumpy, nil), []string{"initialize failed", "no license for this machine"}},
		{"a bundle with an unknown revision", bundleDir(t, "@test/x", modeFuture, nil), []string{"initialize failed", "2099-01-01"}},
		{"a process that never responds", bundleDir(t, "@test/x", modeSilent, nil), []string{"initialize timed out after 1s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			records := newMemoryRecords()
			y, events := realManager(t, home, records, func(o *Options) {
				if c.says[0] == "initialize timed out after 1s" {
					o.StartTimeout = time.Second
				}
			})
			_, err := y.Install(t.Context(), ws, source.Request{Path: c.path, Env: map[string]core.Secret{"API_KEY": "hunter2-hunter2"}})
			expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
			for _, says := range c.says {
				if !strings.Contains(core.TextOf(err), says) {
					t.Errorf("the message does not say %q: %v", says, err)
				}
			}
			if strings.Contains(fmt.Sprintf("%v %+v", err, errorOf(t, err).Unwrap()), "hunter2") {
				t.Errorf("the message gives away a secret: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(home, "apps", "*"))
			inside, _ := filepath.Glob(filepath.Join(home, "apps", ".incoming", "*"))
			if slices.ContainsFunc(left, func(p string) bool { return filepath.Base(p) != ".incoming" }) || len(inside) > 0 {
				t.Errorf("left on disk: %v %v", left, inside)
			}
			expect(t, "apps", len(y.List(ws)), 0)
			expect(t, "records", len(records.rows), 0)
			expectEvents(t, events, core.EventBundleInstallFailed)
		})
	}
}

func TestAStoppedOrUninstalledAppLeavesNoProcess(t *testing.T) {
	for name, end := range map[string]func(*Manager) error{
		"stop":      func(y *Manager) error { _, err := y.Stop(t.Context(), ws, "notes"); return err },
		"uninstall": func(y *Manager) error { _, err := y.Uninstall(t.Context(), ws, "notes"); return err },
		"close":     func(y *Manager) error { return y.Close(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			y, _ := realManager(t, home, newMemoryRecords(), nil)
			install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeTree, nil)})
			pids := append(descendants(t, home, "notes"), look(t, y, "notes").PID)
			expect(t, "processes", len(pids), 4)
			if err := end(y); err != nil {
				t.Fatal(err)
			}
			expectGone(t, pids...)
		})
	}
}

func TestKillMinus9OnARealBundle(t *testing.T) {
	home := t.TempDir()
	y, events := realManager(t, home, newMemoryRecords(), nil)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeTree, nil)})
	old := append(descendants(t, home, "notes"), look(t, y, "notes").PID)
	inFlight := hang(t, y, home, "notes")
	before := time.Now()
	if err := syscall.Kill(old[3], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	end := <-inFlight
	failed := end.at.Sub(before)
	expect(t, "code of the call in flight", core.CodeOf(end.err), core.CodeUnavailable)
	if text, err := callTool(t, y, "notes", "echo", "again"); err != nil || text != "again" {
		t.Errorf("a call after the kill: %q, %v", text, err)
	}
	t.Logf("the call in flight failed after %v, the next one succeeded after %v", failed, time.Since(before))
	if failed > 10*time.Second || time.Since(before) > 30*time.Second {
		t.Errorf("too slow: %v, %v", failed, time.Since(before))
	}
	if err := events.wait(t.Context(), "bundle.recovered", 1); err != nil { // calls continue before it is published
		t.Fatal(err)
	}
	expectEvents(t, events, "bundle.installed", "bundle.crashed 1", "bundle.recovered")
	expectGone(t, old...)
	expect(t, "restart count", y.Health(ws)[0].RestartCount, 1)
}

func TestABundleThatExitsDuringACall(t *testing.T) {
	y, events := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	_, err := callTool(t, y, "notes", "exit", "")
	expect(t, "code", core.CodeOf(err), core.CodeUnavailable)
	if err := events.wait(t.Context(), "bundle.recovered", 1); err != nil {
		t.Fatal(err)
	}
	expect(t, "state", state(t, y, "notes"), core.StateRunning)
}

func TestARealBundleThatKeepsDying(t *testing.T) {
	home := t.TempDir()
	y, events := realManager(t, home, newMemoryRecords(), func(o *Options) {
		o.Policy = &Policy{Delays: []time.Duration{0, time.Millisecond, 2 * time.Millisecond}, HealthyAfter: time.Minute}
	})
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeFuse, nil)})
	fuse := filepath.Join(home, "apps", "notes", "data", "fuse")
	if err := os.WriteFile(fuse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = callTool(t, y, "notes", "exit", "")
	if err := events.wait(t.Context(), "bundle.dead", 1); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, events, "bundle.installed", "bundle.crashed 1", "bundle.crashed 2", "bundle.crashed 3", "bundle.dead")
	dead, _ := events.all()[4].Data.(core.BundleDead)
	if !strings.Contains(dead.Message, "status 9") || !strings.Contains(dead.Message, "the fuse is in") {
		t.Errorf("the message has no reason: %q", dead.Message)
	}
	_, err := y.Start(t.Context(), ws, "notes")
	expect(t, "code of a start that fails", core.CodeOf(err), core.CodeStartFailed)
	if err := os.Remove(fuse); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Start(t.Context(), ws, "notes"); err != nil {
		t.Fatal(err)
	}
	if text, err := callTool(t, y, "notes", "echo", "back"); err != nil || text != "back" {
		t.Errorf("after a manual start: %q, %v", text, err)
	}
}

func TestInvalidStdoutAndLargeStderrAreHarmless(t *testing.T) {
	home := t.TempDir()
	y, _ := realManager(t, home, newMemoryRecords(), nil)
	for _, mode := range []string{modeJunk, modeFlood} {
		install(t, y, source.Request{Path: bundleDir(t, "@test/"+mode, mode, nil)})
		if text, err := callTool(t, y, mode, "echo", "hello"); err != nil || text != "hello" {
			t.Errorf("%s: %q, %v", mode, text, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(home, "apps", "flood", "logs", "*"))
	expect(t, "log files", len(files), 1+logs.MaxOlder)
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > logs.MaxFileSize {
			t.Errorf("%s has %v bytes (%v)", f, info.Size(), err)
		}
	}
}

func TestAToolThatAppearsIsListedAtOnce(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	grown := make(chan int, 100)
	defer y.Watch(ws, func(core.Kind) {
		if strings.Contains(names(y.Tools(ws)), "notes__sprout") {
			grown <- y.List(ws)[0].ToolCount
		}
	})()
	if _, err := callTool(t, y, "notes", "grow", "sprout"); err != nil {
		t.Fatal(err)
	}
	count, _ := testkit.Receive(t, "a notification of the new tool", grown)
	expect(t, "tool count", count, 6)
}

// callEnd describes how and when a call ended.
type callEnd struct {
	err error
	at  time.Time
}

// hang makes a call that does not end, and returns once the bundle has received it.
func hang(t *testing.T, y *Manager, home, app string) <-chan callEnd {
	t.Helper()
	sign := filepath.Join(home, "apps", app, "data", "hanging")
	_ = os.Remove(sign)
	end := make(chan callEnd, 1)
	go func() {
		_, err := callTool(t, y, app, "hang", "")
		end <- callEnd{err, time.Now()}
	}()
	for {
		if _, err := os.Stat(sign); err == nil {
			return end
		}
		if !wait(t.Context(), time.Millisecond) {
			t.Fatal("the call did not arrive")
		}
	}
}

func descendants(t *testing.T, home, app string) []int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(home, "apps", app, "data", "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func selfPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func errorOf(t *testing.T, err error) *core.Error {
	t.Helper()
	e, ok := err.(*core.Error) //nolint:errorlint // the methods of Manager return the error itself
	if !ok {
		t.Fatalf("%v is not a core.Error", err)
	}
	return e
}
