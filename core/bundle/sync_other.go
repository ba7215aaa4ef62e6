//go:build !linux

// The server is also built for darwin (make dist), which has no syncfs: every file is flushed there.

package bundle

import (
	"io/fs"
	"os"
	"path/filepath"
)

// syncTree flushes every file beneath dir.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path)
	})
}

// syncDir flushes one file or directory, and with it a rename in it.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}
