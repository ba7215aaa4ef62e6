package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockABI is the version that the sandbox takes: from 6 on the kernel also keeps signals and
// abstract sockets inside a domain.
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

// landlockVersion is the version of Landlock that this kernel has; 0 for none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// restrictFiles puts the calling thread into a Landlock domain. What it starts is in it, too.
func (p *Profile) restrictFiles() (err error) {
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: landlockAll,
		Scoped:            unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET,
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("create a Landlock ruleset: %w", errno)
	}
	rules := landlockRules(fd)
	defer func() { err = errors.Join(err, unix.Close(int(rules))) }()
	for path, access := range p.access() {
		if err := rules.allow(path, access); err != nil {
			return fmt.Errorf("allow %s: %w", path, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("enter a Landlock domain: %w", errno)
	}
	return nil
}

// KillAll sends SIGKILL to all processes in the sandbox of the calling thread, which has entered it, but not to its
// own process. The kernel does so in one step: no process can escape by forking meanwhile. At LevelNone there is
// nothing that would keep the signal from the other processes of the user, and it is not sent.
func (p *Profile) KillAll() {
	if p.Level == LevelNone {
		return
	}
	firstOfNamespace := os.Getpid() == 1
	// The parent is outside of the Landlock domain: a thread that may signal it is in none.
	if firstOfNamespace || unix.Kill(os.Getppid(), 0) == unix.EPERM {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

func (p *Profile) access() map[string]uint64 {
	access := map[string]uint64{"/proc": landlockRead}
	for _, name := range devices() {
		access["/dev/"+name] = landlockFile
	}
	if p.Level >= LevelNamespaces { // both are the app's own there
		access["/tmp"], access["/dev/shm"] = landlockWrite, landlockWrite
	}
	for _, path := range p.Read {
		if p.Level >= LevelNamespaces { // the file tree hides them
			access[path] = landlockRead
			continue
		}
		for _, open := range around(path, p.Hide) {
			access[open] = landlockRead
		}
	}
	if p.Level >= LevelNamespaces { // elsewhere the directory itself would be open
		for _, layer := range p.Layers {
			access[layer.Dir] = landlockWrite
		}
	}
	for _, path := range p.Write {
		access[path] = landlockWrite
	}
	return access
}

// around is a path, or what lies in it when hidden paths do, without these. A Landlock rule opens all that
// lies below a directory, and no other rule can close a part of it.
func around(path string, hide []string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return []string{path}
	}
	hidden := slices.ContainsFunc(hide, func(h string) bool {
		at, err := filepath.EvalSymlinks(h)
		return err == nil && at != real && pathWithin(at, real)
	})
	if !hidden {
		return []string{path}
	}
	var open []string
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		at := filepath.Join(real, e.Name())
		if e.Type()&os.ModeSymlink != 0 || isHidden(at, hide) {
			continue
		}
		open = append(open, around(at, hide)...)
	}
	return open
}

func isHidden(path string, hide []string) bool {
	return slices.ContainsFunc(hide, func(h string) bool {
		at, err := filepath.EvalSymlinks(h)
		return err == nil && at == path
	})
}

type landlockRules int

// allow adds a rule for a path, if it exists. A path that is only to be read and that cannot be reached stays closed.
func (r landlockRules) allow(path string, access uint64) (err error) {
	file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) && access&unix.LANDLOCK_ACCESS_FS_WRITE_FILE == 0 {
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
