package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Where the trees are mounted while the new root is being built. The first directory must exist on every
// machine.
const (
	stagingDir = "/tmp"
	oldRoot    = "/old"
	newRoot    = "/new"
)

// The options of the app's own in-memory file systems. TMPDIR is in the app's data directory. The kernel uses
// about 1 KiB per file, even an empty one.
const (
	tmpOptions  = "size=256m,mode=1777,nr_inodes=16384"
	maskOptions = "size=4k,mode=755"
)

// buildRoot replaces the file tree of this mount namespace with one that contains only the allowed paths, in
// their original places.
func (p *Profile) buildRoot() error {
	tree := p.layout()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", stagingDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount the new file tree: %w", err)
	}
	for _, dir := range []string{oldRoot, newRoot} {
		if err := os.Mkdir(stagingDir+dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(stagingDir+newRoot, stagingDir+newRoot, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := errors.Join(unix.PivotRoot(stagingDir, stagingDir+oldRoot), os.Chdir("/")); err != nil {
		return fmt.Errorf("enter the new file tree: %w", err)
	}
	if err := tree.build(); err != nil {
		return err
	}
	if err := unix.Unmount(oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old file tree: %w", err)
	}
	if err := errors.Join(os.Chdir(newRoot), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/")); err != nil {
		return fmt.Errorf("enter the new file tree: %w", err)
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}

// layout describes a new file tree. All paths are as seen outside the sandbox.
type layout struct {
	links map[string]string // symbolic links on the way to the allowed paths, with their targets
	masks map[string]bool   // hidden directories that are covered by an empty one
	binds []bind            // parents before their contents
	hide  []string
	shm   int64 // size of /dev/shm in bytes

	layers map[string]Layer // by the real path of the directory
	resolv bool             // the broker answers DNS queries
}

type bind struct {
	path  string
	write bool
	exact bool // without symbolic links
	mount int  // descriptor of a mount to use; 0 for none
}

// layout resolves the allowed paths in the server's file tree.
func (p *Profile) layout() layout {
	l := layout{links: map[string]string{}, masks: map[string]bool{}, layers: map[string]Layer{}, shm: p.Limits.Memory / 4, resolv: !slices.Contains([]string{NetworkAll, NetworkNone}, p.Network.mode())}
	for _, path := range p.Read {
		if l.resolv && path == resolvConf {
			continue
		}
		if b, ok := p.place(l, path, false); ok {
			l.binds = append(l.binds, b)
		}
	}
	for _, layer := range p.Layers {
		if real, err := evalSymlinks(layer.Dir); err == nil {
			l.layers[real] = layer
		}
	}
	for _, path := range p.Write {
		if b, ok := p.place(l, path, true); ok {
			l.binds = append(l.binds, b)
		}
	}
	slices.SortStableFunc(l.binds, func(a, b bind) int { return strings.Compare(a.path, b.path) })
	for _, path := range p.Hide {
		l.hide = append(l.hide, realPath(path))
	}
	return l
}

// place says how a path is shown. It returns false for an Exact path that now leads somewhere else.
func (p *Profile) place(l layout, path string, write bool) (bind, bool) {
	if !slices.Contains(p.Exact, path) {
		real, ok := l.follow(path)
		return bind{path: real, write: write}, ok
	}
	b := bind{path: path, write: write, exact: true}
	for _, m := range p.Mapped {
		if m.Path == path && m.Write == write {
			b.mount = m.FD
		}
	}
	real, err := evalSymlinks(path)
	return b, err == nil && real == path
}

// maxLinks bounds the symbolic links in one path, as the kernel does.
const maxLinks = 40

// follow records the symbolic links on the way to path and returns where it leads.
func (l layout) follow(path string) (real string, ok bool) {
	if real, err := evalSymlinks(path); err == nil && real == path {
		return path, true
	}
	todo := strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")
	at, links := "/", 0
	for len(todo) > 0 {
		next := filepath.Join(at, todo[0])
		todo = todo[1:]
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", false
		}
		l.links[next] = target
		if filepath.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(strings.Trim(filepath.Clean(target), "/"), "/"), todo...)
	}
	_, err := os.Lstat(at)
	return at, err == nil
}

func (l layout) build() error {
	if err := errors.Join(mountProc(), l.mountDev(), mountTmp()); err != nil {
		return err
	}
	for _, b := range l.binds {
		if err := l.bind(b); err != nil {
			return fmt.Errorf("bind %s: %w", b.path, err)
		}
	}
	for dir := range l.masks { // allowed paths in them are mounted now
		if err := unix.MountSetattr(unix.AT_FDCWD, newRoot+dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	if l.resolv {
		if err := errors.Join(os.MkdirAll(newRoot+"/etc", 0o755), os.WriteFile(newRoot+resolvConf, []byte("nameserver 127.0.0.1\n"), 0o644)); err != nil {
			return err
		}
	}
	for at, target := range l.links {
		if err := os.MkdirAll(filepath.Dir(newRoot+at), 0o755); err == nil {
			_ = os.Symlink(target, newRoot+at) // the link already exists if a bound directory contains it
		}
	}
	return nil
}

// bind makes one path visible. If a parent already shows it the same way, it does not need its own mount.
func (l layout) bind(b bind) error {
	layer, layered := l.layers[b.path]
	if !b.write && !layered && b.mount == 0 && l.covered(b) {
		return nil
	}
	if err := mountPoint(b.path); err != nil {
		return err
	}
	at := newRoot + b.path
	if layered && !b.write && layer.mount(b.path) == nil {
		return l.mask(b.path)
	}
	if err := l.show(b, at); err != nil {
		return err
	}
	delete(l.masks, b.path) // the path is allowed by name, although it is in a hidden directory
	return l.mask(b.path)
}

// show mounts a path of the old root. On a read-only mount a device can still be written to, but its mode,
// owner and times cannot be changed.
func (l layout) show(b bind, at string) error {
	if err := b.attach(at); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if strings.HasPrefix(b.path, "/dev/") {
		attr.Attr_set = unix.MOUNT_ATTR_NOSUID
	}
	if !b.write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &attr)
}

// attach makes the mount. An Exact path is opened once, so that no part of it can be replaced by a link in the
// meantime.
func (b bind) attach(at string) error {
	tree := b.mount
	if tree == 0 && !b.exact {
		return unix.Mount(oldRoot+b.path, at, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if tree == 0 {
		fd, err := openExact(oldRoot + b.path)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		if tree, err = unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
			return err
		}
	}
	defer func() { _ = unix.Close(tree) }()
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mount shows a directory of the old root in its place, with the layer's changes.
func (l Layer) mount(dir string) error {
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace
	options := "userxattr,lowerdir=" + escape(oldRoot+dir) + ",upperdir=" + escape(oldRoot+l.Upper) + ",workdir=" + escape(oldRoot+l.Work)
	return unix.Mount("overlay", newRoot+dir, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// covered reports whether b's nearest bound parent shows it, and nothing in between is hidden.
func (l layout) covered(b bind) bool {
	for _, other := range l.binds {
		if PathWithin(b.path, other.path) && b.path != other.path && !slices.ContainsFunc(l.hide, func(h string) bool { return PathWithin(b.path, h) }) {
			return true
		}
	}
	return false
}

// mask hides the hidden paths below a path that was just bound.
func (l layout) mask(path string) error {
	for _, h := range l.hide {
		if !PathWithin(h, path) || h == path {
			continue
		}
		info, err := os.Lstat(newRoot + h)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, fs.ErrPermission):
			continue // Landlock keeps it closed if it is created later, and the app can reach no more than the shim
		case err != nil:
		case info.IsDir():
			l.masks[h] = true
			err = unix.Mount("tmpfs", newRoot+h, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, maskOptions)
		default:
			err = l.show(bind{path: "/dev/null"}, newRoot+h)
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", h, err)
		}
	}
	return nil
}

// mountPoint creates the place to mount path on: a directory or a file, depending on what path is.
func mountPoint(path string) error {
	info, err := os.Lstat(oldRoot + path)
	if err != nil {
		return err
	}
	at := newRoot + path
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	if info.IsDir() {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, nil, 0o600)
}

func mountProc() error {
	if err := os.Mkdir(newRoot+"/proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", newRoot+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

func mountTmp() error {
	for _, dir := range []string{"/tmp", "/var", "/run"} {
		if err := os.MkdirAll(newRoot+dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/tmp", newRoot+"/var/tmp"); err != nil {
		return err
	}
	return unix.Mount("tmpfs", newRoot+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, tmpOptions)
}

// devices returns the harmless files of /dev.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom"} }

func (l layout) mountDev() error {
	if err := os.MkdirAll(newRoot+"/dev/shm", 0o755); err != nil {
		return err
	}
	for _, name := range devices() {
		device := bind{path: "/dev/" + name}
		if err := errors.Join(mountPoint(device.path), l.show(device, newRoot+device.path)); err != nil {
			return fmt.Errorf("bind /dev/%s: %w", name, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, newRoot+"/dev/"+name); err != nil {
			return err
		}
	}
	options := tmpOptions
	if l.shm > 0 {
		options += fmt.Sprintf(",size=%d", l.shm)
	}
	return unix.Mount("tmpfs", newRoot+"/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}
