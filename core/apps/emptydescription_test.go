package apps

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func TestAManifestWithAnEmptyDescriptionIsInstalledWithAWarning(t *testing.T) {
	var log testkit.Log
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
	})
	install(t, y, source.Request{Path: bundleDir(t, "@test/described", modeNormal, nil)})
	expect(t, "log of an app with a description", log.String(), "")
	app := install(t, y, source.Request{Path: bundleDir(t, "@test/blank", modeNormal, map[string]any{"description": ""})})
	expect(t, "state", app.Status, core.StateRunning)
	if text := log.String(); !strings.Contains(text, "[WARN]") || !strings.Contains(text, "manifest has an empty description") || !strings.Contains(text, "app=blank") {
		t.Errorf("the log is %q", text)
	}
}
