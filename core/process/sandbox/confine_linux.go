package sandbox

import (
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
	if err := dropPriority(); err != nil {
		return nil, err
	}
	if err := dropRights(p.UID, p.Group); err != nil {
		return nil, err
	}
	if err := rules.enter(); err != nil {
		return nil, err
	}
	if b == nil {
		if err := unix.Close(int(rules)); err != nil {
			return nil, err
		}
	} else {
		b.rules = rules
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

// dropPriority gives up a priority over other processes that the calling thread inherited from the server.
func dropPriority() error {
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return os.NewSyscallError("sched_getattr", err)
	}
	to := unix.SchedAttr{Policy: now.Policy, Flags: now.Flags & unix.SCHED_FLAG_RESET_ON_FORK, Nice: max(now.Nice, 0)}
	switch to.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR, unix.SCHED_DEADLINE:
		to.Policy = unix.SCHED_NORMAL
	}
	if to.Policy == now.Policy && to.Nice == now.Nice {
		return nil
	}
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, &to, 0))
}

// dropRights drops the capabilities of the calling thread and switches it to the user uid, in one additional group,
// unless uid is 0. It makes the system calls directly, because those of package syscall change all threads.
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
