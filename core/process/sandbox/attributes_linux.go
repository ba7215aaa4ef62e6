package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// changeMode, changeOwner and changeTimes act on an open file in a directory that the app may write to. A file
// that it may only read can have the same owner, and Landlock does not check these calls.
func (b *Broker) changeMode(n notification) error {
	return b.change(n, func(fd int) error { return unix.Fchmod(fd, uint32(n.args[1])) })
}

func (b *Broker) changeOwner(n notification) error {
	return b.change(n, func(fd int) error { return unix.Fchown(fd, int(int32(n.args[1])), int(int32(n.args[2]))) })
}

// changeTimes handles utimensat without a path.
func (b *Broker) changeTimes(n notification) error {
	var times *byte
	if n.args[2] != 0 {
		raw, err := readMemory(int(n.pid), uintptr(n.args[2]), 2*unsafe.Sizeof(unix.Timespec{}))
		if err != nil {
			return err
		}
		times = &raw[0]
	}
	return b.change(n, func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(times)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

func (b *Broker) change(n notification, act func(fd int) error) error {
	fd, err := b.appFile(n)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !b.isOwnFile(fd) {
		return unix.EPERM
	}
	return onOwnThread(b.becomeApp, func() error { return act(fd) })
}
