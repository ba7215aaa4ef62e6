package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Confine restricts the calling thread and with it every process that it starts. The goroutine must be locked
// to its thread and must outlive the app. The broker is nil if connections are not checked. Other threads of
// the process keep their privileges, and the broker runs on them.
func (p *Profile) Confine() (b *Broker, err error) {
	if p.Level == LevelNone {
		return nil, nil
	}
	if b, err = newBroker(p); err != nil {
		return nil, err
	}
	rules, err := p.landlockDomain()
	if err != nil {
		return nil, err
	}
	if err := dropRights(p.UID, p.Group); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := rules.enter(); err != nil {
		return nil, err
	}
	if b != nil {
		brokered, err := b.brokered()
		if err != nil {
			return nil, err
		}
		listener, err := brokered.install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		if err != nil {
			return nil, err
		}
		unix.CloseOnExec(listener)
		b.listener = listener
	}
	calls, err := p.systemCalls()
	if err != nil {
		return nil, err
	}
	_, err = calls.install(0)
	return b, err
}

// dropRights drops the capabilities of the calling thread and switches it to the user uid, in one further
// group, unless uid is 0. It makes the system calls directly, because those of package syscall change all
// threads.
func dropRights(uid, group int) error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0) // refused for a process that has none
	}
	if uid != 0 {
		id := uintptr(uid)
		groups, count := uint32(group), uintptr(0)
		if group != 0 {
			count = 1
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, count, uintptr(unsafe.Pointer(&groups)), 0); errno != 0 {
			return os.NewSyscallError("setgroups", errno)
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, id, id, id); errno != 0 {
			return os.NewSyscallError("setresgid", errno)
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}
