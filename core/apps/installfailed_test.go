package apps

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// failures returns the events of failed installations.
func failures(events *memoryEvents) (all []core.BundleInstallFailed) {
	for _, e := range events.all() {
		if data, ok := e.Data.(core.BundleInstallFailed); ok && e.Name == core.EventBundleInstallFailed && e.Workspace == ws {
			all = append(all, data)
		}
	}
	return all
}

func TestAnInstallationThatFailsIsPublishedOnce(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "hidden", "no.mcpb")
	for name, c := range map[string]struct {
		request source.Request
		refuses string
		want    core.BundleInstallFailed
		never   string
	}{
		"a start that fails": {
			source.Request{URL: "https://host.test/weather"}, "connection refused",
			core.BundleInstallFailed{Name: "weather", Source: core.SourceURL, Error: core.CodeInstallFailed, Message: "connection refused"}, "",
		},
		"a path that does not exist": {
			source.Request{Path: missing}, "",
			core.BundleInstallFailed{Source: core.SourcePath, Error: core.CodeInstallFailed}, "hidden",
		},
		"a name that no registry has": {
			source.Request{Name: "@a/b"}, "", core.BundleInstallFailed{Name: "b", Source: core.SourceName, Error: core.CodeInstallFailed}, "",
		},
		"secrets in the reason": {
			source.Request{
				URL: "https://host.test/weather?token=hunter2&page=1#hunter3", Env: map[string]core.Secret{"KEY": "hunter4"},
				Transport: &source.Transport{Auth: &source.Auth{Type: "bearer", Token: "hunter5"}, Headers: map[string]core.Secret{"X-Key": "hunter6"}},
			},
			"https://host.test/weather?token=hunter2&page=1#hunter3 has hunter2, hunter3, hunter4, hunter5, hunter6\nand on its second line hunter7",
			core.BundleInstallFailed{
				Name: "weather", Source: core.SourceURL, Error: core.CodeInstallFailed,
				Message: "https://host.test/weather has [redacted], [redacted], [redacted], [redacted], [redacted]",
			},
			"hunter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			y, events := managerOf(t, &memoryApp{refuses: c.refuses}, newMemoryRecords())
			if _, err := y.Install(t.Context(), ws, c.request); err == nil {
				t.Fatal("it was installed")
			}
			got := failures(events)
			if len(got) != 1 {
				t.Fatalf("%d events: %+v", len(got), got)
			}
			if c.want.Message == "" && got[0].Message != "" {
				c.want.Message = got[0].Message // any reason
			}
			expect(t, "the event", got[0], c.want)
			if c.never != "" && strings.Contains(got[0].Message, c.never) {
				t.Errorf("the event contains %q: %s", c.never, got[0].Message)
			}
		})
	}
}

// Only administrators may see an app's output, and members do not need to know the server's directories.
func TestTheEventForAnAppThatDiesAtStartHasNoOutput(t *testing.T) {
	home := t.TempDir()
	y, events := realManager(t, home, newMemoryRecords(), nil)
	_, err := y.Install(t.Context(), ws, source.Request{Path: bundleDir(t, "@test/notes", modeDying, nil)})
	if err == nil || !strings.Contains(err.Error(), "its last lines on stderr") {
		t.Fatal(err)
	}
	got := failures(events)
	if len(got) != 1 || !strings.Contains(got[0].Message, "status 7") || strings.Contains(got[0].Message, "stderr") {
		t.Errorf("got %+v", got)
	}
	reason := "open " + home + "/apps/notes/bundle/main.js: no such file; " + home + " is full"
	want := "open main.js: no such file; " + filepath.Base(home) + " is full"
	expect(t, "paths of the server", y.publicReason(source.Order{}, reason), want)
}

func TestShortValuesOfAnAddressStayReadable(t *testing.T) {
	y, _ := managerOf(t, &memoryApp{}, newMemoryRecords())
	const address = "https://127.0.0.1:9/mcp?v=1&e=o&key=abcd;efgh&t=%2Fse%20cret#frag"
	o := source.Order{Source: core.Source{Kind: core.SourceURL, Ref: address}, Remote: &core.Remote{URL: address}}
	for reason, want := range map[string]string{
		"remote server 127.0.0.1:9 cannot be reached": "remote server 127.0.0.1:9 cannot be reached",
		`Post "` + address + `": v=1`:                 `Post "https://127.0.0.1:9/mcp": v=1`,
		"abcd;efgh, efgh, /se cret, %2Fse%20cret":     "[redacted];[redacted], [redacted], [redacted], [redacted]",
	} {
		expect(t, reason, y.publicReason(o, reason), want)
	}
}

func TestAnInstallationThatIsCancelledIsPublished(t *testing.T) {
	y, events := managerOf(t, &memoryApp{hangs: true}, newMemoryRecords())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := y.Install(ctx, ws, source.Request{URL: "https://host.test/weather"})
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("it was installed")
	}
	for _, f := range failures(events) {
		expect(t, "the message", f.Message, "the install was cancelled and left nothing behind")
	}
	expect(t, "events", len(failures(events)), 1)
}

func TestAnInvalidRequestAndADryRunPublishNoFailure(t *testing.T) {
	y, events := managerOf(t, &memoryApp{refuses: "no"}, newMemoryRecords())
	if _, err := y.Install(t.Context(), ws, source.Request{}); err == nil {
		t.Fatal("it was installed")
	}
	servers := source.ImportRequest{MCPServers: map[string]json.RawMessage{"far": json.RawMessage(`{"url":"https://host.test/far"}`)}, DryRun: true}
	if _, err := y.Import(t.Context(), ws, servers); err != nil {
		t.Fatal(err)
	}
	expect(t, "events", len(failures(events)), 0)
	servers.DryRun = false
	if _, err := y.Import(t.Context(), ws, servers); err != nil {
		t.Fatal(err)
	}
	expect(t, "events of the import", len(failures(events)), 1)
}
