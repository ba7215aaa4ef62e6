package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/control"
)

// checkApps asks a running server which apps are not running, and why. A server of another version, which is
// reported separately, may not respond.
func (e *examination) checkApps(ctx context.Context) {
	if e.running == nil {
		return
	}
	list, err := control.Dial(e.home).Apps(ctx)
	if err != nil {
		if e.running.Version == e.o.Version {
			e.addError("apps", "the server's list of apps", err, "check the server's log")
		}
		return
	}
	counts := map[string]int{}
	for _, a := range list {
		counts[a.Status]++
		if a.LastErr == "" {
			continue
		}
		result := failed
		if a.Status == string(core.StateCrashed) { // it will be retried
			result = warning
		}
		what := a.LastErr
		if strings.Contains(what, files.ErrChanged.Error()) {
			what, _, _ = strings.Cut(what, ": find out") // the remedy includes this
		}
		e.add("apps", result, fmt.Sprintf("%s of %s is %s: %s", a.Name, a.Workspace, a.Status, what), e.appRemedy(a))
	}
	e.add("apps", ok, fmt.Sprintf("%d running, %d stopped", counts[string(core.StateRunning)], counts[string(core.StateStopped)]), "")
}

// appRemedy returns what to do about an app that is not running.
func (e *examination) appRemedy(a control.App) string {
	in := ""
	if a.Workspace != core.DefaultWorkspaceID {
		in = " --workspace " + a.Workspace
	}
	switch {
	case strings.Contains(a.LastErr, files.ErrChanged.Error()):
		return fmt.Sprintf("find out who changed the files, then `ropewalk app update %[1]s%[2]s`, or `ropewalk app uninstall %[1]s%[2]s` and install it again; its data stays", a.Name, in)
	case strings.Contains(a.LastErr, bundle.ErrNoProgram.Error()):
		return fmt.Sprintf("install or restore the program; a command without a slash is looked up on the server's PATH, %s, which is read when the server starts; "+
			"then `ropewalk app start %s%s`", e.running.SearchPath, a.Name, in)
	case a.Status == string(core.StateCrashed):
		return fmt.Sprintf("the server starts it again; `ropewalk app logs %s%s` shows its output", a.Name, in)
	}
	return fmt.Sprintf("see `ropewalk app logs %[1]s%[2]s`, correct its settings with `ropewalk app configure %[1]s%[2]s`, then `ropewalk app start %[1]s%[2]s`", a.Name, in)
}
