package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/cleanup"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

// Owns reports whether the server itself put the bundle's files in place.
func (s *Store) Owns(r core.Installation) bool {
	return r.Dir != "" && strings.HasPrefix(r.Dir, source.LayoutOf(s.o.Home, r.Workspace).BundlesDir(r.Name)+string(os.PathSeparator))
}

// CurrentDir returns the current location of a bundle's files. They move with the home, and each server of a cluster
// has them in its own home.
func (s *Store) CurrentDir(r core.Installation) string {
	inHome := filepath.Join("apps", r.Name, "bundle", filepath.Base(r.Dir))
	if !strings.HasSuffix(r.Dir, string(filepath.Separator)+inHome) {
		return r.Dir
	}
	dir := filepath.Join(source.LayoutOf(s.o.Home, r.Workspace).Root, inHome)
	if s.o.Cluster == nil && r.Files == "" && !Exists(dir) && Exists(r.Dir) {
		return r.Dir
	}
	return dir
}

// RemoveUnused removes bundle directories that no record refers to, the layers of uninstalled apps, and all files of
// interrupted installs. Data and logs are kept.
func (s *Store) RemoveUnused(records []core.Installation) {
	used, installed := make(map[string]bool, len(records)), make(map[string]bool, len(records))
	for _, r := range records {
		used[filepath.Clean(r.Dir)] = true
		installed[source.LayoutOf(s.o.Home, r.Workspace).AppDir(r.Name)] = true
	}
	layouts := []source.Layout{{Root: s.o.Home}}
	for _, dir := range subdirectories(filepath.Join(s.o.Home, "workspaces")) {
		layouts = append(layouts, source.Layout{Root: dir})
	}
	for _, l := range layouts {
		s.Remove(l.IncomingDir())
		for _, app := range subdirectories(l.AppsDir()) {
			for _, dir := range subdirectories(filepath.Join(app, "bundle")) {
				if !used[dir] {
					s.Remove(dir)
				}
			}
			s.removeUnusedSums(filepath.Join(app, "bundle"))
			if !installed[app] {
				s.Remove(l.LayersDir(filepath.Base(app)))
			}
		}
	}
}

// subdirectories returns the paths of the directories in dir. It returns nil if dir does not exist.
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

// Remove removes a directory that is no longer used, and the list of hashes of its files. A failure is only logged: the
// next Open tries again.
func (s *Store) Remove(dir string) {
	if err := errors.Join(cleanup.RemoveAll(dir), os.RemoveAll(source.SumsFile(dir))); err != nil {
		s.o.Logger.Warn("could not remove an unused directory", "dir", dir, "error", err)
	}
}
