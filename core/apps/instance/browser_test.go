package instance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestPlaywrightsServerUsesTheSystemsChromiumUnlessItsArgumentsNameABrowser(t *testing.T) {
	bin := t.TempDir()
	chromium := filepath.Join(bin, "chromium")
	if err := os.WriteFile(chromium, []byte("#!/bin/sh\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if _, err := os.Stat(chrome); err == nil {
		chromium = ""
	}
	s := &Starter{HostEnv: map[string]string{"PATH": bin}, Confinement: Confinement{Probe: process.Probe{Level: sandbox.LevelNamespaces}}}
	for _, c := range []struct{ ref, args, want string }{
		{"@playwright/mcp", `["cli.js"]`, chromium}, {"@playwright/mcp", `["cli.js","--browser=firefox"]`, ""},
		{"@playwright/mcp", `["cli.js","--executable-path","/usr/bin/brave"]`, ""}, {"@acme/files", `[]`, ""},
	} {
		spec := Spec{DataDir: "/data", Sandbox: config.Sandbox{Level: sandbox.LevelNamespaces}, Record: core.Installation{Source: core.Source{Kind: core.SourceNPM, Ref: c.ref}, Manifest: []byte(`{"server":{"mcp_config":{"args":` + c.args + `}}}`)}}
		if got := s.environment(spec)["PLAYWRIGHT_MCP_EXECUTABLE_PATH"]; got != c.want {
			t.Errorf("%s %s: %q, want %q", c.ref, c.args, got, c.want)
		}
	}
}

func TestGitDoesNotLookForSystemSettingsThatItCannotRead(t *testing.T) {
	for level, want := range map[sandbox.Level]string{sandbox.LevelNamespaces: "", sandbox.LevelLandlock: "1", sandbox.LevelNone: ""} {
		s := &Starter{Confinement: Confinement{Probe: process.Probe{Level: level}}}
		if got := s.environment(Spec{DataDir: "/data", Sandbox: config.Sandbox{Level: level}})["GIT_CONFIG_NOSYSTEM"]; got != want {
			t.Errorf("%s: %q, want %q", level, got, want)
		}
	}
}
