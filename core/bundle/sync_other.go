//go:build !linux

// The server is also built for darwin (make dist), which does not have syncfs, so every file is synced.

package bundle

import (
	"io/fs"
	"os"
	"path/filepath"
)

// syncTree syncs every file in dir and its subdirectories.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path)
	})
}

// syncDir syncs one file or directory. For a directory, this makes renames in it durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}
