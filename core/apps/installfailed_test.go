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

// failures returns the events of installations that failed.
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
		"a path that is not there": {
			source.Request{Path: missing}, "",
			core.BundleInstallFailed{Source: core.SourcePath, Error: core.CodeInstallFailed}, "hidden",
		},
		"a name of no registry": {
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
				t.Errorf("the event has %q: %s", c.never, got[0].Message)
			}
		})
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
		expect(t, "the message", f.Message, "the install was cancelled; nothing of it is left")
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
