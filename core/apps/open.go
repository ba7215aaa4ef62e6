package apps

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// Open loads what is installed, removes the files of interrupted installs, and begins to start the
// apps, Options.StartsAtOnce at a time. It returns before they run, so that a bad or slow app does not
// delay the server. Apps that the configuration declares are installed or updated first. From now on
// the Manager follows what other servers of the cluster change.
func (m *Manager) Open(ctx context.Context) error {
	var changes <-chan core.Change
	if m.o.Cluster != nil {
		changes = m.o.Cluster.Changes(m.life) // before the records are read, so that no change is missed
	}
	records, err := m.o.Records.Installations(ctx)
	if err != nil {
		return fmt.Errorf("read what is installed: %w", err)
	}
	for i := range records {
		records[i].Dir = m.currentDir(records[i])
	}
	m.removeUnused(records)
	m.broker.LoadCapabilities(ctx)
	ctx, done, err := m.beginWork(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	var starting sync.WaitGroup
	defer func() {
		go func() {
			starting.Wait()
			done()
		}()
	}()
	for _, r := range records {
		a := m.newApp(r)
		a.turn <- struct{}{} // commands wait until the supervisor runs
		m.addApp(a)
		if d, ok := m.declaration(a.key); ok {
			starting.Go(func() { m.updateDeclared(ctx, a, d) })
			continue
		}
		a.resume()
		a.releaseTurn()
	}
	for name := range m.setup.Load().declared {
		k := interact.AppKey{Workspace: core.DefaultWorkspaceID, Name: name}
		d, ok := m.declaration(k)
		if _, err := m.find(k.Workspace, k.Name); !ok || err == nil {
			continue
		}
		starting.Go(func() { m.installMissing(ctx, name, d) })
	}
	if changes != nil {
		starting.Go(func() { m.contributeAllFiles(ctx) })
		m.work.Go(func() { m.followChanges(m.life, changes) })
		m.work.Go(func() { m.o.Cluster.ServePeers(m.life, m.answerPeer) })
	}
	return nil
}

// resume starts a supervisor for an app that ran when the server ended. The caller holds the turn.
func (a *app) resume() {
	if !a.now.Load().record.Running {
		return
	}
	a.transition(core.StateStarting, nil)
	a.startSupervisor(nil)
}

// currentDir returns where a bundle's files are now: they move with the home, and each server of a
// cluster has them in its own home.
func (m *Manager) currentDir(r core.Installation) string {
	inHome := filepath.Join("apps", r.Name, "bundle", filepath.Base(r.Dir))
	if !strings.HasSuffix(r.Dir, string(filepath.Separator)+inHome) {
		return r.Dir
	}
	dir := filepath.Join(source.LayoutOf(m.o.Home, r.Workspace).Root, inHome)
	if m.o.Cluster == nil && r.Files == "" && !exists(dir) && exists(r.Dir) {
		return r.Dir
	}
	return dir
}

// removeUnused removes the directories of bundles that no record names, and all files of installs that
// were interrupted. Data and logs stay.
func (m *Manager) removeUnused(records []core.Installation) {
	used := make(map[string]bool, len(records))
	for _, r := range records {
		used[filepath.Clean(r.Dir)] = true
	}
	layouts := []source.Layout{{Root: m.o.Home}}
	for _, dir := range subdirectories(filepath.Join(m.o.Home, "workspaces")) {
		layouts = append(layouts, source.Layout{Root: dir})
	}
	for _, l := range layouts {
		m.removeDir(l.IncomingDir())
		for _, app := range subdirectories(l.AppsDir()) {
			for _, dir := range subdirectories(filepath.Join(app, "bundle")) {
				if !used[dir] {
					m.removeDir(dir)
				}
			}
		}
	}
}

// subdirectories returns the directories in dir, none when it does not exist.
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

// removeDir removes a directory that is not used any more. A failure is only logged: the next Open
// tries again.
func (m *Manager) removeDir(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		m.log.Warn("unused directory could not be removed", "dir", dir, "error", err)
	}
}
