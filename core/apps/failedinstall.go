package apps

import (
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// failedInstalls holds the declared apps that could not be installed. They are listed as dead, with the reason, until
// an install succeeds or the declaration is removed.
type failedInstalls struct {
	mu   sync.Mutex
	apps map[interact.AppRef]core.App
}

func (f *failedInstalls) add(o source.Order, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.apps == nil {
		f.apps = map[interact.AppRef]core.App{}
	}
	failure := failureOf(err)
	bundleName := o.Source.PublicRef()
	if o.Source.Kind == core.SourcePath { // the location of a file on the server must not be shown as a name
		bundleName = core.ScopedName(o.ServerName)
	}
	f.apps[interact.AppRef{Workspace: o.Workspace, Name: o.ServerName}] = core.App{
		Name: o.ServerName, BundleName: bundleName, Version: o.Version, Status: core.StateDead, Type: "plain",
		LastError: failure.Reason, LastOutput: failure.Output,
	}
}

func (f *failedInstalls) remove(k interact.AppRef) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.apps, k)
}

func (f *failedInstalls) find(k interact.AppRef) (core.App, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	app, ok := f.apps[k]
	return app, ok
}

// in returns the apps of a workspace that could not be installed.
func (f *failedInstalls) in(workspace string) (list []core.App) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, app := range f.apps {
		if k.Workspace == workspace {
			list = append(list, app)
		}
	}
	return list
}

// workspaces returns the workspaces with an app that could not be installed. The result may contain duplicates.
func (f *failedInstalls) workspaces() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for k := range f.apps {
		all = append(all, k.Workspace)
	}
	return all
}

// withFailed adds the apps that could not be installed to a list of installed apps, and sorts it by name.
func (m *Manager) withFailed(workspace string, list []core.App) []core.App {
	failed := m.failedInstalls.in(workspace)
	if len(failed) == 0 {
		return list
	}
	for _, app := range failed {
		if !slices.ContainsFunc(list, func(a core.App) bool { return a.Name == app.Name }) {
			list = append(list, app)
		}
	}
	slices.SortFunc(list, func(a, b core.App) int { return strings.Compare(a.Name, b.Name) })
	return list
}
