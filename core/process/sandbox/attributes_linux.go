package sandbox

import (
	"bytes"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attributes adds the calls that change the mode, owner or times of a file. The broker makes them for files in
// directories that the app may write to. A file that it may only read can have the same owner, and Landlock does not
// check these calls.
func (b *Broker) attributes() {
	calls := map[int32]func(notification) error{
		unix.SYS_FCHMOD: func(n notification) error { return b.change(n, changeMode(n.args[1])) },
		unix.SYS_FCHOWN: func(n notification) error { return b.change(n, changeOwner(n.args[1], n.args[2])) },
		unix.SYS_FCHMODAT: func(n notification) error {
			return b.changeNamed(n, fileName{n.args[0], n.args[1], 0}, changeMode(n.args[2]))
		},
		unix.SYS_FCHMODAT2: func(n notification) error {
			return b.changeNamed(n, fileName{n.args[0], n.args[1], n.args[3]}, changeMode(n.args[2]))
		},
		unix.SYS_FCHOWNAT: func(n notification) error {
			return b.changeNamed(n, fileName{n.args[0], n.args[1], n.args[4]}, changeOwner(n.args[2], n.args[3]))
		},
		unix.SYS_UTIMENSAT: b.changeTimes,
	}
	if runtime.GOARCH == "amd64" {
		calls[sysChmod] = func(n notification) error {
			return b.changeNamed(n, fileName{currentDir(), n.args[0], 0}, changeMode(n.args[1]))
		}
		calls[sysChown] = func(n notification) error {
			return b.changeNamed(n, fileName{currentDir(), n.args[0], 0}, changeOwner(n.args[1], n.args[2]))
		}
		calls[sysLchown] = func(n notification) error {
			return b.changeNamed(n, fileName{currentDir(), n.args[0], unix.AT_SYMLINK_NOFOLLOW}, changeOwner(n.args[1], n.args[2]))
		}
	}
	maps.Copy(b.calls, calls)
}

// Numbers of calls that amd64 has and arm64 does not.
const (
	sysFork, sysVfork             = 57, 58
	sysChmod, sysChown, sysLchown = 90, 92, 94
)

func changeMode(mode uint64) func(string) error {
	return func(path string) error { return unix.Chmod(path, uint32(mode)) }
}

func changeOwner(user, group uint64) func(string) error {
	return func(path string) error { return unix.Chown(path, int(int32(user)), int(int32(group))) }
}

// changeTimes handles utimensat. Without a path it changes an open file.
func (b *Broker) changeTimes(n notification) error {
	var times []unix.Timespec
	if n.args[2] != 0 {
		raw, err := readMemory(int(n.pid), uintptr(n.args[2]), 2*unsafe.Sizeof(unix.Timespec{}))
		if err != nil {
			return err
		}
		if uintptr(len(raw)) < 2*unsafe.Sizeof(unix.Timespec{}) {
			return unix.EFAULT
		}
		times = slices.Clone(unsafe.Slice((*unix.Timespec)(unsafe.Pointer(&raw[0])), 2))
	}
	act := func(path string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, path, times, 0) }
	if n.args[1] == 0 {
		return b.change(n, act)
	}
	return b.changeNamed(n, fileName{n.args[0], n.args[1], n.args[3]}, act)
}

// change calls act with a path that leads to the open file of the app's call. The path can be used even if the broker's
// own descriptor only names the file.
func (b *Broker) change(n notification, act func(path string) error) error {
	fd, err := b.appFile(n)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !b.isOwnFile(fd) {
		return unix.EPERM
	}
	return onOwnThread(b.becomeApp, func() error { return act(descriptorPath(fd)) })
}

// fileName holds the arguments with which a call names a file: a directory's descriptor, the address of a path, and
// flags.
type fileName struct{ dir, path, flags uint64 }

// currentDir is fileName.dir for the working directory.
func currentDir() uint64 {
	dir := unix.AT_FDCWD
	return uint64(dir)
}

// changeNamed finds a file as the app would, and calls act with a path that leads to it.
func (b *Broker) changeNamed(n notification, name fileName, act func(path string) error) error {
	path, err := readPath(int(n.pid), uintptr(name.path))
	if err != nil {
		return err
	}
	at := "cwd"
	if int32(name.dir) != unix.AT_FDCWD {
		at = "fd/" + strconv.Itoa(int(int32(name.dir)))
	}
	dir, err := b.openProc(n, at)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if name.flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	return onOwnThread(b.becomeApp, func() error {
		fd := dir
		if path != "" || name.flags&unix.AT_EMPTY_PATH == 0 {
			if fd, err = unix.Openat2(dir, path, how); err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
		}
		if !b.isOwnFile(fd) {
			return unix.EPERM
		}
		return act(descriptorPath(fd))
	})
}

// readPath copies a path from another process. It never reads beyond the path's last page, because the next page may be
// unreadable.
func readPath(pid int, at uintptr) (string, error) {
	const page = 4096
	var path []byte
	for len(path) < unix.PathMax {
		part := make([]byte, page-at%page)
		local, remote := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}, []unix.RemoteIovec{{Base: at, Len: len(part)}}
		read, err := unix.ProcessVMReadv(pid, local, remote, 0)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part[:read], 0); end >= 0 {
			return string(append(path, part[:end]...)), nil
		}
		path, at = append(path, part[:read]...), at+uintptr(read)
	}
	return "", unix.ENAMETOOLONG
}
