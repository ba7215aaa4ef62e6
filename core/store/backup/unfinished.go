package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// unfinishedPattern is the name pattern of the directory in which a backup is written, next to the final file. A
// process holds a lock on the directory while it writes there, so that the directory of a killed process can be
// recognized.
const unfinishedPattern = ".ropewalk-backup-*"

// unfinished is the directory of a backup that is being written.
type unfinished struct {
	dir  string
	lock *os.File
}

// beginIn creates the directory for a new backup in dir, and removes directories that killed backups left there.
func beginIn(dir string) (*unfinished, error) {
	if err := removeAbandoned(dir); err != nil {
		return nil, err
	}
	for {
		made, err := os.MkdirTemp(dir, unfinishedPattern) // mode 0700
		if err != nil {
			return nil, err
		}
		lock, err := lockDirectory(made)
		switch {
		case err == nil && lock != nil:
			return &unfinished{dir: made, lock: lock}, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, os.Remove(made))
		}
		// Another backup removed it before it was locked, because it looked abandoned.
	}
}

// file returns the path of the backup in the directory.
func (u *unfinished) file() string { return filepath.Join(u.dir, "backup.db") }

// remove removes the directory.
func (u *unfinished) remove() error { return errors.Join(os.RemoveAll(u.dir), u.lock.Close()) }

// removeAbandoned removes the files that this user's killed backups left in dir, which are copies of the state, including its
// secrets.
func removeAbandoned(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // the directory may be write-only
	}
	for _, e := range entries {
		if ours, err := filepath.Match(unfinishedPattern, e.Name()); err != nil || !ours {
			continue
		}
		path := filepath.Join(dir, e.Name())
		lock, err := lockDirectory(path)
		if err != nil || lock == nil {
			continue // in use, already gone, or owned by another user
		}
		err = errors.Join(os.RemoveAll(path), lock.Close())
		if err != nil {
			return fmt.Errorf("removing what an earlier backup left behind: %w", err)
		}
	}
	return nil
}

// lockDirectory locks one of this user's directories. It returns nil if another process holds the lock, and an error that is
// fs.ErrNotExist if the directory was removed.
func lockDirectory(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return nil, f.Close()
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, f.Close()
	}
	there, err := os.Lstat(path)
	if err == nil && !os.SameFile(there, info) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
