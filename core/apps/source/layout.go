package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ropewalk/ropewalk/core"
)

// Layout determines the locations of a workspace's app files. The root is the server's home for the default workspace,
// and <home>/workspaces/<id> for every other workspace.
type Layout struct{ Root string }

// LayoutOf returns the layout of a workspace.
func LayoutOf(home, workspace string) Layout {
	if workspace == core.DefaultWorkspaceID {
		return Layout{home}
	}
	return Layout{filepath.Join(home, "workspaces", workspace)}
}

// AppsDir returns the directory that contains the directories of all apps.
func (l Layout) AppsDir() string { return filepath.Join(l.Root, "apps") }

// AppDir returns the directory with everything that belongs to one app.
func (l Layout) AppDir(name string) string { return filepath.Join(l.Root, "apps", name) }

// BundlesDir returns the directory with an app's unpacked bundles, one subdirectory each.
func (l Layout) BundlesDir(name string) string { return filepath.Join(l.AppDir(name), "bundle") }

// DataDir returns the directory with an app's data, which is kept when the app is uninstalled.
func (l Layout) DataDir(name string) string { return filepath.Join(l.AppDir(name), "data") }

// LayersDir returns the directory with what an app has written into its bundle, one subdirectory per installation. The
// bundle itself does not change.
func (l Layout) LayersDir(name string) string { return filepath.Join(l.AppDir(name), "layer") }

// LogFile returns the path of the log file with an app's stderr.
func (l Layout) LogFile(name string) string {
	return filepath.Join(l.AppDir(name), "logs", "stderr.log")
}

// IncomingDir returns the directory for installs in progress. It cannot collide with an app because app names contain
// no dot.
func (l Layout) IncomingDir() string { return filepath.Join(l.AppsDir(), ".incoming") }

// InstallerCache returns the cache directory of package managers. It is kept until the server starts again.
func (l Layout) InstallerCache() string { return filepath.Join(l.IncomingDir(), "cache") }

// SumsFile returns the path of the file, next to a bundle's directory, that lists the hashes of its files. The file is
// not trusted: the record contains the hash of the list, and the list serves only to name the files that differ.
func SumsFile(dir string) string { return dir + ".sums" }

// maxInstalled is the maximum size in bytes of a package file that the server itself reads.
const maxInstalled = 4 << 20

// readInstalled reads a file in a directory that a package manager has filled. A package may control what is there,
// so only regular files inside the directory are read.
func readInstalled(dir, name string) (raw []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe must not block
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxInstalled {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, maxInstalled)
	}
	return io.ReadAll(io.LimitReader(file, maxInstalled))
}
