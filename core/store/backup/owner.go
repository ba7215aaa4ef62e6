package backup

import (
	"os"
	"syscall"
)

// giveTo gives a file to the owner of a directory: root may restore for a server that runs as another user, which
// could not open the state otherwise. For other users there is nothing to give away.
func giveTo(file, dir string) error {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return os.Lchown(file, int(owner.Uid), int(owner.Gid))
	}
	return nil
}
