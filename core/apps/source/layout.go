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

// Layout says where the apps of one workspace keep their files: below the server's home for the
// default workspace, below <home>/workspaces/<id> for every other.
type Layout struct{ Root string }

// LayoutOf returns the layout of a workspace.
func LayoutOf(home, workspace string) Layout {
	if workspace == core.DefaultWorkspaceID {
		return Layout{home}
	}
	return Layout{filepath.Join(home, "workspaces", workspace)}
}

// AppsDir holds the directories of all apps.
func (l Layout) AppsDir() string { return filepath.Join(l.Root, "apps") }

// AppDir holds everything that belongs to one app.
func (l Layout) AppDir(name string) string { return filepath.Join(l.Root, "apps", name) }

// BundlesDir holds the unpacked bundles of an app, one directory each.
func (l Layout) BundlesDir(name string) string { return filepath.Join(l.AppDir(name), "bundle") }

// DataDir is where an app keeps its data, which outlives an uninstall.
func (l Layout) DataDir(name string) string { return filepath.Join(l.AppDir(name), "data") }

// LayersDir holds what an app has written into its bundle, one directory for each installation. The
// bundle itself does not change.
func (l Layout) LayersDir(name string) string { return filepath.Join(l.AppDir(name), "layer") }

// LogFile is the log file of an app's stderr.
func (l Layout) LogFile(name string) string {
	return filepath.Join(l.AppDir(name), "logs", "stderr.log")
}

// IncomingDir holds what is being installed. No app has this name: app names have no dot.
func (l Layout) IncomingDir() string { return filepath.Join(l.AppsDir(), ".incoming") }

// InstallerCache holds what package managers keep of what they downloaded, until the next start of the server.
func (l Layout) InstallerCache() string { return filepath.Join(l.IncomingDir(), "cache") }

// SumsFile is the file beside the directory of a bundle that lists the hashes of its files. It is not
// trusted: the record has the hash of the list, and the list only serves to name what differs.
func SumsFile(dir string) string { return dir + ".sums" }

// maxInstalled bounds the files of packages that the server itself reads, in bytes.
const maxInstalled = 4 << 20

// readInstalled reads a file below a directory that a package manager has filled. A package may have made what lies
// there: nothing outside of the directory is read, and nothing but regular files.
func readInstalled(dir, name string) (raw []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for a writer
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
