package instance

import (
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

func TestOnlyEnforcedLimitsAreShown(t *testing.T) {
	all := sandbox.Limits{Memory: 1 << 30, Processes: 2, OpenFiles: 3, FileSize: 4 << 20, CPU: 5}
	settings := config.Sandbox{Level: sandbox.LevelNamespaces, Limits: all}
	confined := Confinement{Probe: process.Probe{Level: sandbox.LevelLandlock}}
	if limits := confined.EnforcedLimits(settings); limits != all {
		t.Errorf("in a sandbox, %+v apply", limits)
	}
	if limits := (Confinement{}).EnforcedLimits(settings); limits != (sandbox.Limits{}) {
		t.Errorf("without a sandbox and without cgroups, %+v apply", limits)
	}
}
