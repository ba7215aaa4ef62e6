package pluginhost

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkOwnership returns an error if anyone other than the server's user and root may replace a plugin's file. This
// is the case if the file is a symbolic link, or if it or its directory belongs to another user or is writable by the
// group or by everyone.
func checkOwnership(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link; specify the file that it points to", path)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	folder := filepath.Dir(path)
	in, err := os.Stat(folder)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		info fs.FileInfo
	}{{path, info}, {folder, in}} {
		if owner, ok := f.info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to user ID %d, but must belong to the server's user or to root: chown it", f.path, owner.Uid)
		}
		if f.info.Mode().Perm()&0o022 != 0 && f.info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("%s is writable by others (mode %#o); run chmod go-w %s", f.path, f.info.Mode().Perm(), f.path)
		}
	}
	return nil
}
