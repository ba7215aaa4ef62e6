package apps

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ropewalk/ropewalk/core"
)

// Open reads what is installed, sweeps away what is left of installs that a crash cut short, and
// begins to bring the apps up, Options.StartsAtOnce at a time. It returns before they run, so
// that neither a bad app nor a slow one delays the server. Apps that the configuration declares
// are installed or brought up to date on the way.
func (y *Yard) Open(ctx context.Context) error {
	records, err := y.o.Records.Installations(ctx)
	if err != nil {
		return fmt.Errorf("read what is installed: %w", err)
	}
	y.sweep(records)
	for _, r := range records {
		y.add(y.newApp(r))
	}
	for _, name := range slices.Sorted(maps.Keys(y.o.Configured)) {
		ctx, leave, err := y.enter(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		held := y.hold(name)
		go func() {
			defer leave()
			y.declare(ctx, name, held)
		}()
	}
	for _, r := range records {
		a, err := y.find(r.Workspace, r.Name)
		_, declared := y.declared(key{r.Workspace, r.Name})
		if err == nil && !declared {
			a.resume()
		}
	}
	return nil
}

// resume has an app supervised again that ran when the server ended. The caller holds the turn, or
// nobody else has the app yet.
func (a *app) resume() {
	if !a.now.Load().record.Running {
		return
	}
	a.become(core.StateStarting, nil)
	a.begin(nil)
}

// sweep removes the directories of bundles that no record names, and everything incoming: an
// install that was not recorded never happened. Data and logs stay.
func (y *Yard) sweep(records []core.Installation) {
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
func (y *Yard) clear(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		y.log.Warn("What is left of an install could not be removed.", "dir", dir, "error", err)
	}
}
