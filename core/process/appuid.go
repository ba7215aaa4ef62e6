package process

import (
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The user ids that apps get below a server that runs as root. systemd leaves this range unused, and
// distributions give out none of it.
const (
	firstAppUID = 0x70000000
	appUIDs     = 1 << 27

	// AppsGroup is a group of all apps, for directories that they may pass through.
	AppsGroup = firstAppUID - 1
)

// AppUID is the user id of an app, from a name that no other app of the machine has. Two names give the
// same id with a probability of one in 134 million.
func AppUID(name string) int {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return firstAppUID + int(hash.Sum64()%appUIDs)
}

// Own gives a directory and all in it to a user, unless it is the user's already. 0 is root. Symbolic
// links are not followed.
func Own(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) == uid {
		return nil
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		return err
	}
	return os.Lchown(dir, uid, uid) // last: it says that all the rest is done
}
