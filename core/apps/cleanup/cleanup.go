// Package cleanup deletes files and directories that apps leave behind.
package cleanup

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxOpenLevels limits how many file descriptors a removal uses, because an app decides how deep its directories are.
const maxOpenLevels = 64

// RemoveAll removes a file, or a directory with all its contents, regardless of depth and permissions. It is not an
// error if the path does not exist. Symbolic links are removed, not followed. No app may change the directory while it
// is being removed.
//
// It exists because [os.RemoveAll] uses a descriptor for each level and fails on directories that their owner may not
// read.
func RemoveAll(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return os.Remove(dir)
	}
	root, err := openDirectory(unix.AT_FDCWD, dir)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	r := removal{root: root}
	err = r.empty(root, 0)
	for err == nil && r.moved > 0 { // directories that were too deep are now in root
		r.moved = 0
		err = r.empty(root, 0)
	}
	if err := errors.Join(err, unix.Close(root)); err != nil {
		return &fs.PathError{Op: "remove", Path: dir, Err: err}
	}
	return os.Remove(dir)
}

// removal is one run of RemoveAll.
type removal struct {
	root  int // descriptor of the directory
	moved int // number of directories that were too deep and were moved to root since the last pass
	names int // number of names generated for them
}

// empty removes everything in a directory, except what it moves to the root.
func (r *removal) empty(dir, depth int) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.remove(dir, name, depth); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

func (r *removal) remove(dir int, name string, depth int) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return err
	}
	switch removed := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); {
	case removed == nil:
		return nil
	case errors.Is(removed, unix.ENOTDIR):
		return err // name is a file: return the error of the first attempt
	}
	inner, err := openDirectory(dir, name)
	if err != nil {
		return err
	}
	if depth == maxOpenLevels {
		return errors.Join(unix.Close(inner), r.moveUp(dir, name))
	}
	if err := errors.Join(r.empty(inner, depth+1), unix.Close(inner)); err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// moveUp moves a directory to the root, under an unused name.
func (r *removal) moveUp(dir int, name string) error {
	for {
		r.names++
		to := ".moved-" + strconv.Itoa(r.names)
		var info unix.Stat_t
		if err := unix.Fstatat(r.root, to, &info, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			continue
		} else if err != unix.ENOENT {
			return err
		}
		r.moved++
		return unix.Renameat(dir, name, r.root, to)
	}
}

// openDirectory opens a directory inside another one. If necessary, it changes the mode so that the owner has all
// permissions.
func openDirectory(at int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	dir, err := unix.Openat(at, name, flags, 0)
	if err == unix.EACCES {
		if err := unix.Fchmodat(at, name, unix.S_IRWXU, 0); err != nil {
			return -1, err
		}
		dir, err = unix.Openat(at, name, flags, 0)
	}
	if err != nil {
		return -1, err
	}
	var info unix.Stat_t
	err = unix.Fstat(dir, &info)
	if err == nil && info.Mode&unix.S_IRWXU != unix.S_IRWXU {
		err = unix.Fchmod(dir, unix.S_IRWXU)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(dir))
	}
	return dir, nil
}

func namesIn(dir int) ([]string, error) {
	again, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "directory")
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}
