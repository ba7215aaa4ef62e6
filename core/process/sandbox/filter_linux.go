package sandbox

import (
	"maps"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// forbidden returns the system calls that no app needs: they change mounts, namespaces, the kernel or the
// clock, inspect other processes, or bypass this filter, as io_uring does.
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

// metadata returns the system calls that change a file's attributes, and old ones that change its times by path.
// Landlock does not check them, so they are forbidden at LevelLandlock. The broker makes the calls that programs use to
// change a file's mode, owner or times.
func metadata() []uintptr {
	return append([]uintptr{
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FSETXATTR, unix.SYS_FREMOVEXATTR, fileSetattr,
	}, metadataHere()...)
}

// fileSetattr is file_setattr, new in Linux 6.17. Its number is the same on all architectures.
const fileSetattr = 469

// fileIoctls refuses the ioctls that change the attributes of an open file or create something in an open directory,
// regardless of how it was opened. These are the ioctls for writing in linux/fs.h, linux/fscrypt.h and
// linux/fsverity.h, and those of ext4, XFS, F2FS and FAT. It refuses all Btrfs ioctls except those that copy data
// into a file that is open for writing.
func fileIoctls() (code []bpf.Instruction) {
	const (
		kind, written  = 0xff00, 0x40000000 // parts of the ioctl number (linux/ioctl.h)
		extents        = 0xc020660b         // FS_IOC_FIEMAP
		clone, copying = 0x40049409, 0x4020940d
		dedupe, btrfs  = 0xc0189436, 0x9400
	)
	for _, request := range []uint32{extents, clone, copying, dedupe} {
		code = append(code, equal(1, request, permit())...)
	}
	// These write as well, although their numbers do not say so: FS_IOC_SET_ENCRYPTION_POLICY, EXT4_IOC_MIGRATE and
	// EXT4_IOC_ALLOC_DA_BLKS.
	for _, request := range []uint32{0x800c6613, 0x6609, 0x660c} {
		code = append(code, equal(1, request, refuse(unix.EPERM))...)
	}
	for _, letter := range []uint32{'f', 'v', 'X', 'r', 0xf5} {
		code = append(code, equalPart(1, kind|written, letter<<8|written, refuse(unix.EPERM))...)
	}
	return append(code, equalPart(1, kind, btrfs, refuse(unix.EPERM))...)
}

// interprocess returns the system calls for System V IPC and POSIX message queues. At LevelLandlock they would give
// access to the machine's objects, which all programs of the server's user share.
func interprocess() []uintptr {
	return []uintptr{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	}
}

// missing returns the system calls that fail as if the kernel did not have them, so that programs fall back to
// others. The arguments of clone3 and openat2 are in memory, where a filter cannot see them. The memory of a memfd
// does not belong to a process, so it would not be counted. Requests for asynchronous I/O (fs.aio-max-nr) are shared
// by the whole machine, and one app could take all of them.
func missing() []uintptr {
	return []uintptr{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_IO_SETUP}
}

// fileCommands refuses leases and delegations on files. They need only a file that is open for reading and has the
// same owner, and delay everyone else who opens the file for up to 45 seconds (fs.lease-break-time). At LevelLandlock
// it also refuses to choose the signal that announces input, which is sent to any thread (see ownThread).
func (p *Profile) fileCommands() (code []bpf.Instruction) {
	commands := []uint32{unix.F_SETLEASE, fSetDelegation, fSetHint}
	if p.Level < LevelNamespaces {
		commands = append(commands, fSetSignal)
	}
	for _, command := range commands {
		code = append(code, equal(1, command, refuse(unix.EACCES))...)
	}
	return code
}

// Commands of fcntl(2). fSetHint is F_SET_RW_HINT, which changes an inode through a file that is open for reading.
const (
	fSetSignal = 10
	fSetHint   = 1024 + 12
)

// ownFilters refuses the filters that programs load themselves, as a kernel without them does. The kernel compiles
// them into memory that is limited for the whole machine (net.core.bpf_jit_limit). One app could take all of it.
// After that, no program of an ordinary user could load a filter, and no other app could start.
func (p *program) ownFilters() {
	const setFilter, filterMode = 1, 2
	p.on(unix.SYS_SECCOMP, equal(0, setFilter, refuse(unix.EINVAL))...)
	p.on(unix.SYS_PRCTL, equal(0, unix.PR_SET_SECCOMP, equal(1, filterMode, refuse(unix.EINVAL))...)...)
	p.on(unix.SYS_SETSOCKOPT, equal(1, unix.SOL_SOCKET, slices.Concat(
		equal(2, unix.SO_ATTACH_FILTER, refuse(unix.ENOPROTOOPT)), equal(2, unix.SO_DETACH_FILTER, refuse(unix.ENOENT)), equal(2, unix.SO_ATTACH_REUSEPORT_CBPF, refuse(unix.ENOPROTOOPT)))...)...)
}

// ownThread refuses signals to the calling thread, which starts the app. It is in the same Landlock domain as the app,
// so the kernel would allow them, and SIGKILL or SIGSTOP would end or stop the whole shim. At LevelNamespaces the shim
// is the first process of its namespace, and ignores both.
func (p *program) ownThread(thread int) {
	for number, target := range map[uintptr]uint32{
		unix.SYS_KILL: 0, unix.SYS_TKILL: 0, unix.SYS_RT_SIGQUEUEINFO: 0, unix.SYS_TGKILL: 1, unix.SYS_RT_TGSIGQUEUEINFO: 1,
	} {
		p.on(number, equal(target, uint32(thread), refuse(unix.EPERM))...)
	}
}

// fSetDelegation is F_SETDELEG, new in Linux 6.19.
const fSetDelegation = 1024 + 16

// systemCalls returns the filter for everything an app must not do.
func (p *Profile) systemCalls() (*program, error) {
	f, err := newProgram()
	if err != nil {
		return nil, err
	}
	for _, number := range forbidden() {
		f.on(number, refuse(unix.EPERM))
	}
	for _, number := range missing() {
		f.on(number, refuse(unix.ENOSYS))
	}
	if p.Level < LevelNamespaces {
		for _, number := range append(interprocess(), unix.SYS_PIDFD_SEND_SIGNAL) { // the target of pidfd_send_signal is a descriptor, which ownThread cannot check
			f.on(number, refuse(unix.ENOSYS))
		}
	}
	if p.Level < LevelNamespaces && !p.Metadata {
		for _, number := range metadata() {
			f.on(number, refuse(unix.EPERM))
		}
	}
	f.on(unix.SYS_CLONE, when(0, namespaceFlags, refuse(unix.EPERM))...)
	f.on(unix.SYS_PERSONALITY, slices.Concat(equal(0, 0, permit()), equal(0, 0xffffffff, permit()), refuse1(unix.EPERM))...)
	f.on(unix.SYS_IOCTL, p.ioctls()...)
	f.on(unix.SYS_FCNTL, p.fileCommands()...)
	if p.Level < LevelNamespaces {
		f.ownThread(unix.Gettid())
	}
	f.others(p)
	f.ownFilters()
	f.modes()
	f.sockets()
	f.add(permit())
	return f, nil
}

// ioctls refuses input to a terminal and, where metadata does, changes to file attributes.
func (p *Profile) ioctls() (code []bpf.Instruction) {
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} {
		code = append(code, equal(1, request, refuse(unix.EPERM))...)
	}
	if p.Level < LevelNamespaces && !p.Metadata {
		code = append(code, fileIoctls()...)
	}
	return code
}

// others refuses changes to the limits and scheduling of another process. The kernel allows them between processes of
// one user, and Landlock does not check them. Otherwise an app could change the shim, which measures it, and at
// LevelLandlock the server. With process id 0 each of these calls affects the caller. A thread id is also a process id
// here, so threads can set their CPU affinity only at LevelNamespaces. There, the only other process that an app can
// name is the shim, and changing its affinity does no harm.
//
// Changing the limits that the shim relies on appears to succeed, so that programs that lower them continue.
func (p *program) others(profile *Profile) {
	var own, old []bpf.Instruction
	for _, resource := range append(slices.Collect(maps.Keys(profile.fixedLimits())), unix.RLIMIT_CORE, unix.RLIMIT_LOCKS) {
		own = append(own, equal(1, uint32(resource), pointer(2, pretend())...)...)
		old = append(old, equal(0, uint32(resource), pretend())...)
	}
	p.on(unix.SYS_PRLIMIT64, slices.Concat(equal(0, 0, append(own, permit())...), pointer(2, refuse(unix.EPERM)))...)
	p.on(unix.SYS_SETRLIMIT, old...)
	for number, process := range map[uintptr]uint32{unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETATTR: 0} {
		p.on(number, slices.Concat(equal(process, 0, permit()), refuse1(unix.EPERM))...)
	}
	for _, number := range []uintptr{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET} {
		own := uint32(unix.PRIO_PROCESS)
		if number == unix.SYS_IOPRIO_SET {
			own = ioprioProcess
		}
		p.on(number, slices.Concat(equal(0, own, equal(1, 0, permit())...), refuse1(unix.EPERM))...)
	}
	if profile.Level < LevelNamespaces {
		p.on(unix.SYS_SCHED_SETAFFINITY, slices.Concat(equal(0, 0, permit()), refuse1(unix.EPERM))...)
	}
}

const ioprioProcess = 1 // IOPRIO_WHO_PROCESS of linux/ioprio.h

// modes refuses to create setuid and setgid files. If an app runs as the server's user, such a file would give that
// user's rights to anybody who executes it.
func (p *program) modes() {
	for number, mode := range modeArguments() {
		p.on(number, when(mode, setID, refuse(unix.EPERM))...)
	}
	for number, flags := range openArguments() {
		p.on(number, when(flags, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, when(flags+1, setID, refuse(unix.EPERM))...)...)
	}
}

const setID = unix.S_ISUID | unix.S_ISGID

// sockets allows the families and protocols that programs use. It refuses anything addressed by a send call,
// which the broker does not see: connections made that way, and datagrams between Unix sockets.
func (p *program) sockets() {
	internet := slices.Concat(
		equalPart(1, 0xf, unix.SOCK_STREAM, slices.Concat(equal(2, 0, permit()), equal(2, unix.IPPROTO_TCP, permit()), refuse1(unix.EPROTONOSUPPORT))...),
		equalPart(1, 0xf, unix.SOCK_DGRAM, slices.Concat(equal(2, 0, permit()), equal(2, unix.IPPROTO_UDP, permit()), refuse1(unix.EPROTONOSUPPORT))...),
	)
	local := slices.Concat(equalPart(1, 0xf, unix.SOCK_DGRAM, refuse(unix.EACCES)), equalPart(1, 0xf, unix.SOCK_RAW, refuse(unix.EACCES)))
	p.on(unix.SYS_SOCKET, slices.Concat(
		equal(0, unix.AF_UNIX, append(local, permit())...),
		equal(0, unix.AF_NETLINK, equal(2, unix.NETLINK_ROUTE, permit())...), // reads its own network namespace
		equal(0, unix.AF_INET, internet...), equal(0, unix.AF_INET6, internet...),
		refuse1(unix.EACCES))...)
	p.on(unix.SYS_SOCKETPAIR, slices.Concat(equal(0, unix.AF_UNIX, append(local, permit())...), refuse1(unix.EACCES))...)
	for number, flags := range map[uintptr]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		p.on(number, when(flags, unix.MSG_FASTOPEN, refuse(unix.EOPNOTSUPP))...)
	}
}

// brokered returns the filter that passes calls to the broker.
func (b *Broker) brokered() (*program, error) {
	f, err := newProgram()
	if err != nil {
		return nil, err
	}
	for number := range b.calls {
		f.on(uintptr(number), ask())
	}
	b.gateForks(f)
	f.add(permit())
	return f, nil
}
