package apps

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// Open reads what is installed, sweeps away what is left of installs that a crash cut short, and
// begins to bring the apps up, Options.StartsAtOnce at a time. It returns before they run, so
// that neither a bad app nor a slow one delays the server. Apps that the configuration declares
// are installed or brought up to date on the way. What other servers change from now on is followed.
func (y *Manager) Open(ctx context.Context) error {
	var changes <-chan core.Change
	if y.o.Cluster != nil {
		changes = y.o.Cluster.Changes(y.life) // first, so that nothing is missed between the two
	}
	records, err := y.o.Records.Installations(ctx)
	if err != nil {
		return fmt.Errorf("read what is installed: %w", err)
	}
	for i := range records {
		records[i].Dir = y.rebased(records[i])
	}
	y.sweep(records)
	y.recall(ctx)
	ctx, leave, err := y.enter(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	var starting sync.WaitGroup
	defer func() {
		go func() {
			starting.Wait()
			leave()
		}()
	}()
	for _, r := range records {
		a := y.newApp(r)
		a.turn <- struct{}{} // commands wait until the app has its supervisor
		y.show(a)
		if d, ok := y.declared(a.key); ok {
			starting.Go(func() { y.bringUpToDate(ctx, a, d) })
			continue
		}
		a.resume()
		a.give()
	}
	for name := range y.setup.Load().declared {
		k := key{core.DefaultWorkspaceID, name}
		d, ok := y.declared(k)
		if _, err := y.find(k.workspace, k.name); !ok || err == nil {
			continue
		}
		starting.Go(func() { y.installMissing(ctx, name, d) })
	}
	if changes != nil {
		starting.Go(func() { y.contributeAll(ctx) })
		y.work.Go(func() { y.follow(y.life, changes) })
		y.work.Go(func() { y.o.Cluster.ServePeers(y.life, y.resume) })
	}
	return nil
}

// contributeAll gives other servers what was installed when there were none.
func (y *Manager) contributeAll(ctx context.Context) {
	y.mu.RLock()
	var all []*app
	for _, apps := range y.apps {
		all = slices.AppendSeq(all, maps.Values(apps))
	}
	y.mu.RUnlock()
	for _, a := range all {
		if err := y.contribute(ctx, a); err != nil && ctx.Err() == nil {
			a.log.Warn("The files of an app could not be given to the other servers; it runs on this one only", "error", err)
		}
	}
}

// resume has an app supervised again that ran when the server ended. The caller holds the turn.
func (a *app) resume() {
	if !a.now.Load().record.Running {
		return
	}
	a.become(core.StateStarting, nil)
	a.begin(nil)
}

// rebased is where a bundle's files are now: a home that was moved, or is named by another path,
// takes the bundles along that lie in it, and each server of a deployment has them in its own.
func (y *Manager) rebased(r core.Installation) string {
	inHome := filepath.Join("apps", r.Name, "bundle", filepath.Base(r.Dir))
	if !strings.HasSuffix(r.Dir, string(filepath.Separator)+inHome) {
		return r.Dir
	}
	dir := filepath.Join(placesOf(y.o.Home, r.Workspace).root, inHome)
	if y.o.Cluster == nil && r.Files == "" && !exists(dir) && exists(r.Dir) {
		return r.Dir
	}
	return dir
}

// sweep removes the directories of bundles that no record names, and everything incoming: an
// install that was not recorded never happened. Data and logs stay.
func (y *Manager) sweep(records []core.Installation) {
	used := make(map[string]bool, len(records))
	for _, r := range records {
		used[filepath.Clean(r.Dir)] = true
	}
	roots := []places{{y.o.Home}}
	for _, dir := range subdirectories(filepath.Join(y.o.Home, "workspaces")) {
		roots = append(roots, places{dir})
	}
	for _, p := range roots {
		y.clear(p.incoming())
		for _, app := range subdirectories(p.apps()) {
			for _, dir := range subdirectories(filepath.Join(app, "bundle")) {
				if !used[dir] {
					y.clear(dir)
				}
			}
		}
	}
}

// subdirectories are the directories in dir, none when it does not exist.
func subdirectories(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}

// clear removes a directory that nobody needs.
func (y *Manager) clear(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		y.log.Warn("What is left of an install could not be removed", "dir", dir, "error", err)
	}
}
