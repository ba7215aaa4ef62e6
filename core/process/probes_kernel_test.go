//go:build linux

package process_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelProbes are attacks on the kernel's interfaces and on the shim.
func kernelProbes() map[string]func(target) string {
	probes := map[string]func(target) string{
		"namespaces of another process":                 func(t target) string { return entersNamespace(t.Server) },
		"a process in new namespaces":                   clones,
		"a system call with another calling convention": func(target) string { return calls(1<<30|unix.SYS_GETPID, 0) },
		"a listener for its own connections":            listensForCalls,
		"devices of the kernel":                         devices,
		"settings of the kernel": func(target) string {
			return opensAny(os.O_WRONLY, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/sys/kernel/uevent_helper")
		},
		"control groups": func(target) string {
			return opensAny(os.O_WRONLY, "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/release_agent")
		},
		"a lower risk of being killed when memory runs out": func(target) string {
			return succeeds(os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0))
		},
		"a priority over others":         priority,
		"higher limits":                  limits,
		"a stopped shim":                 stopsShim,
		"the server's process group":     joinsGroup,
		"other processes' limits":        limitsOthers,
		"other processes' scheduling":    schedulesOthers,
		"all inotify instances":          func(target) string { return watches() },
		"other processes' shared memory": func(t target) string { return attaches(t.Segment) },
		"a lease on a file":              leases,
		"a program after a crash":        dumpsCore,
		"filters of its own":             loadsFilters,
		"a better oom_score in a memory shortage": func(target) string {
			if raw, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || len(strings.TrimSpace(string(raw))) < 3 || raw[0] == '-' {
				return fmt.Sprintf("%q %v", raw, err)
			}
			return ""
		},
	}
	for name, number := range map[string]uintptr{
		"a descriptor of another process": unix.SYS_PIDFD_GETFD, "the kernel's comparison of processes": unix.SYS_KCMP,
		"advice for another process": unix.SYS_PROCESS_MADVISE, "another root": unix.SYS_CHROOT, "an exchanged root": unix.SYS_PIVOT_ROOT,
		"a detached mount": unix.SYS_OPEN_TREE, "a new file system": unix.SYS_FSOPEN, "attributes of a mount": unix.SYS_MOUNT_SETATTR,
		"kernel performance events": unix.SYS_PERF_EVENT_OPEN, "faults in user space": unix.SYS_USERFAULTFD, "events of all files": unix.SYS_FANOTIFY_INIT,
		"swapping": unix.SYS_SWAPON, "another kernel": unix.SYS_KEXEC_LOAD, "messages of the kernel": unix.SYS_SYSLOG, "accounting": unix.SYS_ACCT,
		"the clock": unix.SYS_SETTIMEOFDAY, "the name of the machine": unix.SYS_SETHOSTNAME, "quotas": unix.SYS_QUOTACTL,
		"memory that belongs to no process": unix.SYS_MEMFD_CREATE, "added keys": unix.SYS_ADD_KEY,
		"all requests for asynchronous I/O": unix.SYS_IO_SETUP,
	} {
		probes[name] = func(target) string { return calls(number, 0) }
	}
	return probes
}

// dumpsCore checks that no core dumps are made. With a limit of 0, the kernel would still run the program that
// kernel.core_pattern may name, as root.
func dumpsCore(target) string {
	none := unix.Rlimit{}
	_, _, _ = unix.Syscall(unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&none)), 0)
	for _, pid := range []int{0, os.Getpid()} {
		_ = unix.Prlimit(pid, unix.RLIMIT_CORE, &none, nil)
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil || now.Cur != 1 || now.Max != 1 {
		return fmt.Sprintf("the limit is %d of %d (%v)", now.Cur, now.Max, err)
	}
	return ""
}

// loadsFilters uses up memory that is limited for the whole machine.
func loadsFilters(target) string {
	code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	program := unix.SockFprog{Len: 1, Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno == 0 {
		return "seccomp"
	}
	if unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0) == nil {
		return "prctl"
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err.Error()
	}
	for _, option := range []int{unix.SO_ATTACH_FILTER, unix.SO_ATTACH_REUSEPORT_CBPF} {
		if unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, option, &program) == nil {
			return fmt.Sprintf("socket option %d", option)
		}
	}
	return ""
}

// leases takes a lease on a file. With a lease, an app could delay everybody who opens a file of the same user.
func leases(t target) string {
	const setDelegation = 1024 + 16 // F_SETDELEG of linux/fcntl.h
	at := filepath.Join(t.Data, "leased")
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		return err.Error()
	}
	file, err := os.Open(at)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	for _, command := range []int{unix.F_SETLEASE, setDelegation} {
		for _, kind := range []int{unix.F_RDLCK, unix.F_WRLCK} {
			if _, err := unix.FcntlInt(file.Fd(), command, kind); err != unix.EACCES { // other errors come from the kernel
				return fmt.Sprintf("lease %d: %v", command, err)
			}
		}
	}
	return ""
}

func opensAny(flags int, paths ...string) string {
	for _, path := range paths {
		if got := opens(path, flags); got != "" {
			return got
		}
	}
	return ""
}

func devices(target) string {
	if got := opensAny(os.O_RDWR, "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/tty", "/dev/console", "/dev/sda", "/dev/vda", "/dev/loop-control", "/dev/net/tun"); got != "" {
		return got
	}
	return succeeds(unix.Mknod("device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))))
}

func entersNamespace(pid int) string {
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc"} {
		fd, err := unix.Open(proc(pid, "ns/"+kind), unix.O_RDONLY, 0)
		if err == nil && unix.Setns(fd, 0) == nil {
			return kind
		}
	}
	return calls(unix.SYS_SETNS, ^uintptr(0))
}

func clones(target) string {
	for _, flag := range []uintptr{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWNET, unix.CLONE_NEWPID, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP} {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		if errno == 0 {
			return fmt.Sprintf("clone with %#x", flag)
		}
		if got := calls(unix.SYS_UNSHARE, flag); got != "" {
			return got
		}
	}
	return calls(unix.SYS_CLONE3, 0)
}

// listensForCalls asks the kernel to report this process's connects to the process itself instead of to the
// shim.
func listensForCalls(target) string {
	code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
	program := unix.SockFprog{Len: 1, Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno == 0 {
		return "a second listener"
	}
	return ""
}

func priority(target) string {
	if unix.Setpriority(unix.PRIO_PROCESS, 0, -5) == nil {
		return "a higher priority"
	}
	parameter := int32(1)
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&parameter))) // 1 is SCHED_FIFO
	if errno == 0 {
		return "real time"
	}
	return ""
}

func limits(target) string {
	for _, resource := range []int{unix.RLIMIT_NICE, unix.RLIMIT_RTPRIO} { // the server's user may have a priority over others
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil || now.Max != 0 {
			return fmt.Sprintf("limit %d is %d (%v)", resource, now.Max, err)
		}
	}
	for _, resource := range []int{unix.RLIMIT_NOFILE, unix.RLIMIT_FSIZE} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil || now.Max == unix.RLIM_INFINITY {
			return fmt.Sprintf("limit %d is %d (%v)", resource, now.Max, err)
		}
		if unix.Prlimit(0, resource, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1}, nil) == nil {
			return fmt.Sprintf("limit %d was raised", resource)
		}
	}
	return ""
}

// joinsGroup joins the process groups of the server and of another app. If a process leaves its group while a stopped
// process remains in it, the kernel sends SIGHUP to the whole group. No sandbox checks that signal.
func joinsGroup(t target) string {
	for _, pid := range []int{t.Server, t.Other, os.Getppid()} {
		group, err := unix.Getpgid(pid)
		if err != nil || group == unix.Getpgrp() {
			continue
		}
		cmd := exec.Command("/proc/self/exe", bundleArg, "args")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
		if cmd.Run() == nil {
			return fmt.Sprintf("the group of process %d", pid)
		}
	}
	return ""
}

func stopsShim(target) string {
	if unix.Kill(os.Getppid(), unix.SIGSTOP) == nil && os.Getppid() != 1 {
		return "the shim may be stopped"
	}
	raw, _ := os.ReadFile(proc(os.Getppid(), "stat"))
	if strings.Contains(string(raw), ") T ") {
		return "the shim is stopped"
	}
	if os.Getppid() == 1 { // process 1 of a namespace ignores such signals
		return ""
	}
	threads, _ := os.ReadDir(proc(os.Getppid(), "task"))
	for _, entry := range threads {
		thread, _ := strconv.Atoi(entry.Name())
		if got := signalsThread(os.Getppid(), thread); got != "" {
			return "a thread of the shim may be stopped through " + got
		}
	}
	if _, err := unix.FcntlInt(0, 10, int(unix.SIGSTOP)); err == nil { // F_SETSIG; F_SETOWN_EX names the thread
		return "input may stop a thread of the shim"
	}
	return ""
}

// signalsThread tries every call that sends a signal to a thread of another process. SIGSTOP to one stops all of them.
func signalsThread(process, thread int) string {
	info := [16]uint64{1: math.MaxUint32} // si_code is -1, SI_QUEUE
	_, _, queue := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(thread), 0, uintptr(unsafe.Pointer(&info)))
	_, _, threadQueue := unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(process), uintptr(thread), 0, uintptr(unsafe.Pointer(&info)), 0, 0)
	_, _, tkill := unix.Syscall(unix.SYS_TKILL, uintptr(thread), 0, 0)
	dir, dirErr := unix.Open(proc(thread, ""), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	handle, handleErr := unix.PidfdOpen(thread, unix.PIDFD_THREAD)
	for name, succeeded := range map[string]bool{
		"kill": unix.Kill(thread, 0) == nil, "tgkill": unix.Tgkill(process, thread, 0) == nil, "tkill": tkill == 0,
		"rt_sigqueueinfo": queue == 0, "rt_tgsigqueueinfo": threadQueue == 0,
		"a directory":  dirErr == nil && unix.PidfdSendSignal(dir, 0, nil, 0) == nil,
		"a descriptor": handleErr == nil && unix.PidfdSendSignal(handle, 0, nil, 0) == nil,
	} {
		if succeeded {
			return name
		}
	}
	return ""
}

// watches creates inotify instances until the kernel refuses. The kernel counts them per server user.
func watches() string {
	all, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return err.Error()
	}
	var limit int
	_, _ = fmt.Sscan(string(all), &limit)
	for n := range limit {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err == nil {
			defer unix.Close(fd)
		} else {
			if n > limit/2 {
				return fmt.Sprintf("%d of %d", n, limit)
			}
			return ""
		}
	}
	return "all"
}

// limitsOthers sets limits of the shim and the server, which the kernel allows between processes of one user. It sets
// the current values, so that the test is unharmed if it succeeds.
func limitsOthers(t target) string {
	for _, pid := range []int{os.Getppid(), t.Server} {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now); err != nil {
			continue
		}
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &now, nil); err == nil {
			return fmt.Sprintf("prlimit of process %d", pid)
		}
	}
	return ""
}

// schedulesOthers sets the scheduling of the shim and the server, to its current values.
func schedulesOthers(t target) string {
	for _, pid := range []int{os.Getppid(), t.Server} {
		if now, err := unix.SchedGetAttr(pid, 0); err == nil && unix.SchedSetAttr(pid, now, 0) == nil {
			return fmt.Sprintf("sched_setattr of process %d", pid)
		}
		if now, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err == nil && unix.Setpriority(unix.PRIO_PROCESS, pid, 20-now) == nil {
			return fmt.Sprintf("setpriority of process %d", pid)
		}
	}
	return ""
}

func attaches(segment int) string {
	memory, err := unix.SysvShmAttach(segment, 0, unix.SHM_RDONLY)
	if err != nil || !strings.HasPrefix(string(memory), canary) {
		return ""
	}
	return "the segment"
}

// fileProbes are attempts to read files and to plant some.
func fileProbes() map[string]func(target) string {
	return map[string]func(target) string{
		"the log of the database":             func(t target) string { return readsFile(t.Database + "-wal") },
		"the root of the server":              func(t target) string { return readsAny(proc(t.Server, "root/etc/passwd")) },
		"the directory of the server":         func(t target) string { return readsLink(proc(t.Server, "cwd")) },
		"the program of the server":           func(t target) string { return opens(proc(t.Server, "exe"), os.O_WRONLY) },
		"the map of the server":               func(t target) string { return readsAny(proc(t.Server, "maps")) },
		"the root of another app":             func(t target) string { return readsAny(proc(t.Other, "root/etc/passwd")) },
		"descriptors of another app":          func(t target) string { return readsLinks(proc(t.Other, "fd")) },
		"other programs' temporary files":     func(t target) string { return readsFile(t.Temporary) },
		"other programs' shared memory files": func(t target) string { return readsFile(t.SharedMemory) },
		"its own runtime":                     func(target) string { return opens(os.Args[0], os.O_WRONLY|os.O_APPEND) },
		"the home of the user":                func(target) string { return listsAny("/root", "/home") },
		"files of programs that start later": func(target) string {
			return plants("/etc/cron.d", "/etc/systemd/system", "/var/spool/cron", "/etc/profile.d", "/root", "/usr/lib", "/lib/systemd/system", "/etc/ld.so.conf.d")
		},
		"libraries of all programs": func(target) string {
			return opensAny(os.O_WRONLY|os.O_CREATE, "/etc/ld.so.preload", "/etc/ld.so.cache")
		},
		"a file with its owner's rights":      ownersRights,
		"a data directory that is a link":     func(t target) string { return succeeds(os.Rename(t.Data, t.Data+"-moved")) },
		"a bundle directory that is replaced": func(t target) string { return succeeds(os.Rename(t.Bundle, t.Bundle+"-moved")) },
	}
}

func readsLink(path string) string {
	to, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return to
}

func listsAny(dirs ...string) string {
	for _, dir := range dirs {
		if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
			return filepath.Join(dir, names[0].Name())
		}
	}
	return ""
}

func plants(dirs ...string) string {
	for _, dir := range dirs {
		if got := writes(filepath.Join(dir, "planted")); got != "" {
			return dir
		}
	}
	return ""
}

// ownersRights creates a setuid program. Anybody who starts the program would run it as the app's user, which may be
// the server's user.
func ownersRights(t target) string {
	at := filepath.Join(t.Data, "program")
	if err := os.WriteFile(at, []byte("#!/bin/sh"), 0o700); err != nil {
		return err.Error()
	}
	file, err := os.Open(at)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	_ = unix.Fchmod(int(file.Fd()), 0o4755)
	_ = unix.Fchmodat(unix.AT_FDCWD, at, 0o4755, 0)
	_, _, _ = unix.Syscall6(unix.SYS_FCHMODAT2, ^uintptr(99), uintptr(unsafe.Pointer(unsafe.StringData(at+"\x00"))), 0o6755, 0, 0, 0)
	for name, flags := range map[string]int{"created": unix.O_CREAT | unix.O_WRONLY, ".": unix.O_TMPFILE | unix.O_WRONLY} {
		fd, err := unix.Open(filepath.Join(t.Data, name), flags, 0o4755)
		if err != nil {
			continue
		}
		var stat unix.Stat_t
		err = unix.Fstat(fd, &stat)
		_ = unix.Close(fd)
		if err == nil && stat.Mode&unix.S_ISUID != 0 {
			return "created"
		}
	}
	_ = unix.Mknod(filepath.Join(t.Data, "node"), unix.S_IFREG|0o4755, 0)
	for _, name := range []string{"program", "node"} {
		if info, err := os.Stat(filepath.Join(t.Data, name)); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			return name
		}
	}
	return ""
}
