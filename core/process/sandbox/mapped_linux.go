package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// openExact opens a path that contains no symbolic links.
func openExact(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
}

// evalSymlinks is filepath.EvalSymlinks. It asks the kernel first: nearly all paths contain no links, and reading
// each of their directories takes most of the time and memory of a shim's start.
func evalSymlinks(path string) (string, error) {
	fd, err := openExact(path)
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	case err != nil:
		return filepath.EvalSymlinks(path)
	}
	return filepath.Clean(path), unix.Close(fd)
}

// OwnerOf returns the owner of a path. It fails if the path contains symbolic links.
func OwnerOf(path string) (Owner, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return Owner{}, err
	}
	return Owner{UID: int(stat.Uid), GID: int(stat.Gid)}, nil
}

// OpenMapped opens a path, which must not contain symbolic links, as its own mount. users is a user namespace that
// maps the path's owner to another user, who owns the files in that mount. Unmapped ids appear as nobody. It needs
// root, and a file system that supports ID-mapped mounts.
func OpenMapped(path string, users *os.File, write bool) (*os.File, error) {
	fd, err := openExact(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", path, err)
	}
	mount := os.NewFile(uintptr(tree), path)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Userns_fd: uint64(users.Fd())}
	if !write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = mount.Close()
		return nil, fmt.Errorf("map the owner of %s: %w", path, err)
	}
	return mount, nil
}

// Accessible reports whether an unprivileged user may read a path, and write to it if write is set. At
// LevelNamespaces the directories above it do not matter, because the app's file tree replaces them.
func Accessible(path string, uid int, write bool, level Level) bool {
	fd, err := openExact(path)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil {
		return false
	}
	mode := uint32(unix.R_OK)
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		mode |= unix.X_OK
	}
	if write {
		mode |= unix.W_OK
	}
	found := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread loses its privileges, and ends with the goroutine
		if err := dropRights(uid, 0); err != nil {
			found <- err
			return
		}
		if level >= LevelNamespaces {
			found <- unix.Faccessat(fd, "", mode, unix.AT_EMPTY_PATH)
		} else {
			found <- unix.Faccessat(unix.AT_FDCWD, path, mode, 0)
		}
	}()
	return <-found == nil
}
