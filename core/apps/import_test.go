package apps

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestAURLWithoutATransportIsAlsoTriedWithTheOlderTransport(t *testing.T) {
	s := remoteServer(t, "", "", true)
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, private)
	result, err := y.Import(t.Context(), ws, source.ImportRequest{Text: `"far": {"url": "` + s.URL + `/sse"}`, AllowPrivate: true})
	if err != nil || result.Servers[0].Status != statusInstalled {
		t.Fatalf("%+v (%v)", result, err)
	}
	if text, err := callTool(t, y, "far", "echo", "hello"); err != nil || text != "hello" {
		t.Errorf("echo: %q, %v", text, err)
	}
	if record, err := records.Installation(t.Context(), ws, "far"); err != nil || record.Remote.Type != "sse" {
		t.Errorf("recorded %+v (%v)", record.Remote, err)
	}
}

func TestARepeatedImportSkipsOrReplacesInstalledApps(t *testing.T) {
	one, other := remoteServer(t, "", "", false), remoteServer(t, "", "", true)
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), private)
	run := func(url, existing, want string) core.App {
		t.Helper()
		r := source.ImportRequest{MCPServers: map[string]json.RawMessage{"far": json.RawMessage(`{"url":"` + url + `"}`)}, AllowPrivate: true, Existing: existing}
		r.DryRun = true
		plan, err := y.Import(t.Context(), ws, r)
		if planned := map[string]string{statusExists: statusExists}[want]; err != nil || planned != "" && plan.Servers[0].Status != planned {
			t.Errorf("planned: %+v (%v)", plan, err)
		}
		r.DryRun = false
		result, err := y.Import(t.Context(), ws, r)
		if err != nil || result.Servers[0].Status != want {
			t.Fatalf("%s gives %+v (%v), want %s", existing, result.Servers, err, want)
		}
		app, err := y.App(ws, "far")
		if err != nil {
			t.Fatal(err)
		}
		return app
	}
	run(one.URL+"/a", "", statusInstalled)
	for _, existing := range []string{"", source.ExistingSkip} {
		if app := run(other.URL+"/b", existing, statusExists); app.BundleName != one.URL+"/a" {
			t.Errorf("%q leaves %s", existing, app.BundleName)
		}
	}
	if app := run(other.URL+"/b", source.ExistingReplace, statusReplaced); app.BundleName != other.URL+"/b" || app.Status != core.StateRunning {
		t.Errorf("after the replacement, it is %+v", app)
	}
	if app := run("http://127.0.0.1:1/mcp", source.ExistingReplace, statusFailed); app.BundleName != other.URL+"/b" {
		t.Errorf("after a replacement that does not start it is %+v", app)
	}
	if text, err := callTool(t, y, "far", "echo", "hello"); err != nil || text != "hello" {
		t.Errorf("echo of the app to be replaced: %q, %v", text, err)
	}
}

func TestTwoServersWithOneAppNameAndDisabledOnesAreReported(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), private)
	s := remoteServer(t, "", "", false)
	text := `{"mcpServers": {"My App": {"url": "` + s.URL + `"}, "my-app": {"url": "` + s.URL + `"}, "off": {"url": "` + s.URL + `", "enabled": false}}}`
	result, err := y.Import(t.Context(), ws, source.ImportRequest{Text: text, AllowPrivate: true, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"My App": statusPlanned, "my-app": statusFailed, "off": statusDisabled}
	for _, server := range result.Servers {
		if server.Status != want[server.Name] {
			t.Errorf("%s: %+v", server.Name, server)
		}
	}
}

func TestAnAppHasOnlyTheToolsThatItsPastedDefinitionAllows(t *testing.T) {
	s := remoteServer(t, "", "", false)
	records := newMemoryRecords()
	y, _ := realManager(t, t.TempDir(), records, private)
	listed := func(filter, existing string) (names []string) {
		t.Helper()
		r := source.ImportRequest{Text: `{"mcpServers": {"far": {"url": "` + s.URL + `"` + filter + `}}}`, AllowPrivate: true, Existing: existing}
		result, err := y.Import(t.Context(), ws, r)
		if err != nil || result.Servers[0].App == nil {
			t.Fatalf("%s: %+v (%v)", filter, result.Servers, err)
		}
		for _, tool := range y.Offer(ws, nil).Tools {
			names = append(names, tool.Name)
		}
		app, record := result.Servers[0].App, installed(t, records, "far")
		if app.ToolCount != len(names) || (app.ToolFilter != nil) != (filter != "") || !reflect.DeepEqual(record.Tools, app.ToolFilter) || !reflect.DeepEqual(app.ToolFilter, result.Servers[0].ToolFilter) {
			t.Errorf("%s: the app is %+v, its record is %+v", filter, app, record.Tools)
		}
		return names
	}
	if got := listed(`, "includeTools": ["ec*"]`, ""); !slices.Equal(got, []string{"echo"}) {
		t.Errorf("with echo alone, it has %v", got)
	}
	if got := listed(`, "disabledTools": ["echo"]`, source.ExistingReplace); len(got) == 0 || slices.Contains(got, "echo") {
		t.Errorf("without echo, it has %v", got)
	}
	if got := listed("", source.ExistingReplace); len(got) < 2 || !slices.Contains(got, "echo") {
		t.Errorf("without a filter, it has %v", got)
	}
}

func installed(t *testing.T, records *memoryRecords, name string) core.Installation {
	t.Helper()
	record, err := records.Installation(t.Context(), ws, name)
	if err != nil {
		t.Fatal(err)
	}
	return record
}
