package server

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// AppRuns waits until an app of the default workspace runs, and reports whether it does. It does not wait
// for an app that is dead, or was stopped by somebody; one that is stopped only because its start has not
// begun yet is waited for. It waits until ctx ends for one that is not installed yet.
func (s *Server) AppRuns(ctx context.Context, name string) bool {
	return appRuns(ctx, s.apps, s.store, name)
}

// appStates is the part of apps.Manager that appRuns needs.
type appStates interface {
	Health(workspace string) []core.AppHealth
}

// installations is the part of the store that appRuns needs.
type installations interface {
	Installation(ctx context.Context, workspace, name string) (core.Installation, error)
}

func appRuns(ctx context.Context, apps appStates, records installations, name string) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all := apps.Health(core.DefaultWorkspaceID)
		if i := slices.IndexFunc(all, func(a core.AppHealth) bool { return a.Name == name }); i >= 0 {
			switch all[i].State {
			case core.StateRunning:
				return true
			case core.StateDead:
				return false
			case core.StateStopped:
				if record, err := records.Installation(ctx, core.DefaultWorkspaceID, name); err == nil && !record.Running {
					return false
				}
			default:
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
