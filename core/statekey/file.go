package statekey

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ropewalk/ropewalk/core/store/seal"
)

// WriteFile replaces a key file, or creates it with mode 0600. The write is atomic: if it fails, the old file is
// unchanged. The file keeps its owner: root may rotate the keys of a server that runs as another user.
func WriteFile(path string, keys *seal.Keys) (err error) {
	mode, uid, gid := fs.FileMode(0o600), -1, -1
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			uid, gid = int(owner.Uid), int(owner.Gid)
		}
	}
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}
	_, err = part.WriteString("# Keys for Ropewalk's state: the first encrypts, all decrypt.\n" + keys.Text().Reveal())
	err = errors.Join(err, part.Chown(uid, gid), part.Chmod(mode), part.Sync(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
