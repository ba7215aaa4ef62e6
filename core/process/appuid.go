package process

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"syscall"
)

// The user ids that apps get when the server runs as root. systemd leaves this range unused, and distributions
// do not assign ids from it.
const (
	firstAppUID = 0x70000000
	appUIDs     = 1 << 27

	// AppsGroup is the group that all apps belong to, for directories they may traverse.
	AppsGroup = firstAppUID - 1
)

// AppUID derives an app's user id from name, which must be unique on the machine. Two names get the same id
// with a probability of one in 134 million.
func AppUID(name string) int {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return firstAppUID + int(hash.Sum64()%appUIDs)
}

// Own changes the owner of a directory and everything in it to uid, unless uid owns the directory already. 0 is
// root. It always changes the owner of the entries named in created, if they exist. Symbolic links are not
// followed, and the directory's owner cannot redirect Own to files elsewhere by replacing entries in the
// meantime.
func Own(dir string, uid int, created ...string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != uid {
		err := fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || path == "." {
				return err
			}
			return root.Lchown(path, uid, uid)
		})
		if err != nil {
			return err
		}
		return root.Lchown(".", uid, uid) // last: marks the rest as done
	}
	for _, name := range created {
		if err := root.Lchown(name, uid, uid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
