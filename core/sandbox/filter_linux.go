package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in the kernel's struct seccomp_data. Both supported processors are little-endian: the low
// half of an argument comes first.
const (
	offsetNumber    = 0
	offsetProcessor = 4
	offsetArguments = 16
)

// x32 marks the system calls of a second calling convention on amd64.
const x32 = 0x40000000

const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// forbidden are the system calls that no app needs: they change mounts, namespaces, the kernel or the
// clock, look into other processes, or, as io_uring, go past this filter.
func forbidden() []uintptr {
	return append([]uintptr{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_VHANGUP,
		unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	}, forbiddenHere()...)
}

// metadata are the system calls that change the owner, mode, times or attributes of a file by its path.
// Landlock does not check them: at LevelLandlock, where the app has the server's user id, they are
// forbidden. Those that take an open file remain.
func metadata() []uintptr {
	return append([]uintptr{
		unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	}, metadataHere()...)
}

// program is a filter that is being written.
type program struct{ code []bpf.Instruction }

func (p *program) add(code ...bpf.Instruction) { p.code = append(p.code, code...) }

func refuse(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

func permit() bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW} }

func argument(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArguments + 8*n, Size: 4}
}

// on runs code for one system call. The code ends with a return on every way.
func (p *program) on(number uintptr, code ...bpf.Instruction) {
	p.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(code))})
	p.add(code...)
}

// newProgram loads the number of the system call, and refuses those of another calling convention.
func newProgram() (*program, error) {
	processor, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("there is no system call filter for %s", runtime.GOARCH)
	}
	return &program{code: []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetProcessor, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: processor, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}}, nil
}

// systemCalls is the filter of what an app may not do at all.
func (p *Profile) systemCalls() (*program, error) {
	f, err := newProgram()
	if err != nil {
		return nil, err
	}
	for _, number := range forbidden() {
		f.on(number, refuse(unix.EPERM))
	}
	if p.Level < LevelNamespaces {
		for _, number := range metadata() {
			f.on(number, refuse(unix.EPERM))
		}
		// Without a path utimensat changes the times of an open file.
		f.on(unix.SYS_UTIMENSAT, argument(1), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 2},
			bpf.LoadAbsolute{Off: offsetArguments + 8 + 4, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse(unix.EPERM), permit())
	}
	f.on(unix.SYS_CLONE3, refuse(unix.ENOSYS)) // its flags lie in memory; C libraries then use clone
	f.on(unix.SYS_CLONE, argument(0), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: namespaceFlags, SkipFalse: 1}, refuse(unix.EPERM), permit())
	f.on(unix.SYS_PERSONALITY, argument(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xffffffff, SkipTrue: 1}, refuse(unix.EPERM), permit())
	f.on(unix.SYS_IOCTL, argument(1), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1}, refuse(unix.EPERM), permit())
	f.sockets()
	f.add(permit())
	return f, nil
}

// sockets permits the families that programs use, and no connection that is made by sending: those
// are not seen by the broker.
func (p *program) sockets() {
	p.on(unix.SYS_SOCKET, argument(0),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 9},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_INET6, SkipTrue: 5},
		argument(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_DGRAM, SkipTrue: 2, SkipFalse: 1},
		bpf.Jump{Skip: 1}, // netlink reads the own network namespace
		refuse(unix.EACCES), permit())
	for number, flags := range map[uintptr]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		p.on(number, argument(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MSG_FASTOPEN, SkipFalse: 1}, refuse(unix.EOPNOTSUPP), permit())
	}
}

// connects is the filter that hands every connect to the broker.
func connects() (*program, error) {
	f, err := newProgram()
	if err != nil {
		return nil, err
	}
	f.on(unix.SYS_CONNECT, bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF})
	f.add(permit())
	return f, nil
}

// install sets the filter on the calling thread. With unix.SECCOMP_FILTER_FLAG_NEW_LISTENER the result
// is the descriptor on which notifications arrive.
func (p *program) install(flags uintptr) (listener int, err error) {
	raw, err := bpf.Assemble(p.code)
	if err != nil {
		return 0, fmt.Errorf("assemble the system call filter: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, fmt.Errorf("install the system call filter: %w", errno)
	}
	return int(fd), nil
}
