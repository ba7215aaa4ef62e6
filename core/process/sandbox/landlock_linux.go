package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockABI is the version that the sandbox requires: since version 6 the kernel also confines signals and
// abstract sockets to a domain.
const landlockABI = 6

const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockAll = landlockRead | landlockFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	landlockWrite = landlockAll &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)
)

// landlockVersion returns the Landlock version of this kernel, or 0.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlockDomain creates the rules for files. It runs with the shim's privileges, because the app's may not
// suffice to reach its own directory, or the paths hidden from it.
func (p *Profile) landlockDomain() (_ landlockRules, err error) {
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: landlockAll,
		Scoped:            unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET,
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, fmt.Errorf("create a Landlock ruleset: %w", errno)
	}
	rules := landlockRules(fd)
	for path, access := range p.access() {
		if err := rules.allow(path, access, slices.Contains(p.Exact, path)); err != nil {
			return 0, errors.Join(fmt.Errorf("allow %s: %w", path, err), unix.Close(int(rules)))
		}
	}
	return rules, nil
}

// enter puts the calling thread into a Landlock domain, along with everything that it starts.
func (r landlockRules) enter() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r), 0, 0); errno != 0 {
		return fmt.Errorf("enter a Landlock domain: %w", errno)
	}
	return nil
}

// KillAll sends SIGKILL to all processes in the sandbox of the calling thread, except its own process. The thread must
// have entered the sandbox. The kernel kills them in one step, so no process can escape by forking at the same time. At
// LevelNone KillAll does nothing, because the signal would reach the user's other processes.
func (p *Profile) KillAll() {
	if p.Level == LevelNone {
		return
	}
	// The parent is outside the Landlock domain: a thread that may signal it is not in one.
	if isFirst() || unix.Kill(os.Getppid(), 0) == unix.EPERM {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

// KillsAnywhere reports whether KillAll works when called from any thread, rather than only from one that has entered
// the sandbox. Such a thread competes with the app's threads for CPU time.
func (p *Profile) KillsAnywhere() bool { return p.Level >= LevelNamespaces && isFirst() }

// isFirst reports whether this is the first process of its namespace, which does not signal itself.
func isFirst() bool { return os.Getpid() == 1 }

func (p *Profile) access() map[string]uint64 {
	access := map[string]uint64{"/proc": landlockRead}
	for _, name := range devices() {
		access["/dev/"+name] = landlockFile
	}
	closed := p.closed()
	if p.Level >= LevelNamespaces {
		// Both are the app's own, but a rule also opens what is mounted below them.
		for _, own := range []string{"/tmp", "/dev/shm"} {
			outside := func(c string) bool { return !PathWithin(c, own) }
			below := slices.DeleteFunc(slices.Clone(closed), outside)
			if !slices.ContainsFunc(slices.Concat(p.Read, p.Write), func(path string) bool { return contains(path, below) }) {
				access[own] = landlockWrite
			}
		}
	}
	for _, path := range p.Read {
		for _, open := range around(path, closed) {
			access[open] = landlockRead
		}
	}
	if p.Level >= LevelNamespaces { // at LevelLandlock, the app could change the directory itself
		for _, layer := range p.Layers {
			access[layer.Dir] = landlockWrite
		}
	}
	for _, path := range p.Write {
		for _, open := range around(path, closed) {
			access[open] = landlockWrite
		}
	}
	return access
}

// closed returns the hidden paths and the symbolic links on the way to them. Masks alone do not keep a path closed
// at LevelNamespaces: the kernel removes a mask when something outside the sandbox replaces what it covers.
func (p *Profile) closed() (closed []string) {
	way := layout{links: map[string]string{}}
	for _, path := range p.Hide {
		way.follow(path)
		closed = append(closed, realPath(path))
	}
	return slices.AppendSeq(closed, maps.Keys(way.links))
}

// around returns path itself, or, if it contains closed paths, its contents without them. A Landlock rule opens
// everything below a directory, and no other rule can close a part of it.
func around(path string, closed []string) []string {
	if !contains(path, closed) {
		return []string{path}
	}
	real := realPath(path)
	var open []string
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil // nothing in the directory is opened
	}
	for _, e := range entries {
		at := filepath.Join(real, e.Name())
		if e.Type()&os.ModeSymlink == 0 && !slices.Contains(closed, at) && !slices.Contains(closed, LogOf(at)) {
			open = append(open, around(at, closed)...)
		}
	}
	return open
}

// contains reports whether closed paths are below path.
func contains(path string, closed []string) bool {
	real := realPath(path)
	return slices.ContainsFunc(closed, func(c string) bool { return c != real && PathWithin(c, real) })
}

// realPath resolves the symbolic links in the part of a path that exists: a hidden file may be created later.
func realPath(path string) string {
	real, err := evalSymlinks(path)
	if err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(realPath(dir), filepath.Base(path))
	}
	return path
}

type landlockRules int

// allow adds a rule for a path, if it exists. A read-only path that cannot be reached remains closed, and so does an
// exact path that has become a symbolic link.
func (r landlockRules) allow(path string, access uint64, exact bool) (err error) {
	open := func(path string) (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) }
	if exact {
		open = openExact
	}
	file, err := open(path)
	if exact && errors.Is(err, unix.ELOOP) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) && access&unix.LANDLOCK_ACCESS_FS_WRITE_FILE == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(file)) }()
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landlockFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(file)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
