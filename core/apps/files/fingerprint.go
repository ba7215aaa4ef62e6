package files

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFingerprint is the most files and directories that Fingerprint examines. Examining that many takes about ten
// milliseconds, much less than starting an app.
const maxFingerprint = 20_000

// Fingerprint identifies the current state of a directory that is used in place, without reading its files. It covers
// the path, mode, size, inode and times of each file in dir, and of each of others: the app's files outside dir. The
// change time also covers a file that was replaced by one with the same size and modification time. The result is "" if
// the state is not known: there are too many files, some of them cannot be examined, or one of others is a directory.
func (s *Store) Fingerprint(dir string, others ...string) string {
	s.fingerprints <- struct{}{}
	defer func() { <-s.fingerprints }()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	hash, count := sha256.New(), 0
	_, _ = fmt.Fprintf(hash, "%q\n", root) // a write to a hash cannot fail
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if count++; err == nil && count > maxFingerprint {
			err = fmt.Errorf("more than %d files", maxFingerprint)
		}
		switch {
		case err != nil || entry.IsDir():
			return err
		case entry.Type() == fs.ModeSymlink:
			if err := addTarget(hash, root, path); err != nil {
				return err
			}
		}
		return addState(hash, path, unix.Lstat)
	})
	for _, path := range others {
		if err == nil && filepath.IsAbs(path) {
			err = addTarget(hash, root, path)
		}
	}
	if err != nil {
		return ""
	}
	return "in place " + hex.EncodeToString(hash.Sum(nil))
}

// addTarget adds the file that a path leads to if it is outside root. It fails if the path leads to a directory outside
// root.
func addTarget(to io.Writer, root, path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil || target == root || strings.HasPrefix(target, root+string(filepath.Separator)) {
		return nil //nolint:nilerr // nothing is there, or it is not a path
	}
	return addState(to, target, func(path string, state *unix.Stat_t) error {
		err := unix.Stat(path, state)
		if err == nil && state.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = fmt.Errorf("%s is a directory", path)
		}
		return err
	})
}

func addState(to io.Writer, path string, stat func(string, *unix.Stat_t) error) error {
	var now unix.Stat_t
	if err := stat(path, &now); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "%q %o %d %d %d %d\n", path, now.Mode, now.Size, now.Ino, now.Mtim.Nano(), now.Ctim.Nano())
	return err
}
