package process

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// shimName is the name of a shim in the output of ps.
const shimName = "ropewalk-shim"

// reaper says whether orphaned descendants become children of the shim.
const reaper = true

const openNonblock = syscall.O_NONBLOCK

func selfPath() string { return "/proc/self/exe" }

func descriptorPath(fd int, _ string) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func duplicate(from, to int) error { return syscall.Dup3(from, to, 0) }

// becomeReaper makes every orphaned descendant a child of this process. If that fails (on a kernel before 3.4),
// only the process group is left, as on other systems.
func becomeReaper() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = os.WriteFile("/proc/self/comm", []byte(shimName), 0)
}

// closeOnExec keeps all descriptors except the standard streams from the program, including those that the
// server itself inherited.
func closeOnExec() { _ = unix.CloseRange(socketFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

func (s *shim) childAttributes() *syscall.SysProcAttr {
	death := syscall.SIGKILL
	if s.isInit {
		death = 0 // the kernel kills the program with its shim anyway
	}
	// The program dies if the thread of its shim ends. In its own session, it cannot join the process groups of the
	// server and of other programs: the kernel would hang up a group that the program leaves behind with a stopped
	// process.
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: death, Cloneflags: s.cloneFlags}
}

// signalTree signals the program's process group and every descendant of this process. The group goes first: it
// does not require a search of /proc, and is nearly always all there is.
func signalTree(child int, sig syscall.Signal) {
	_ = syscall.Kill(-child, sig)
	for _, p := range descendants(os.Getpid(), processes()) {
		if p.group != child {
			_ = syscall.Kill(p.pid, sig)
		}
	}
}

// killOrphans sends SIGKILL to the children of this process, including those that lost their parent, and
// reports whether there were any. It takes microseconds. Searching the process table takes milliseconds, by
// which time processes that fork and exit are long gone.
func killOrphans() (found bool) {
	children, _ := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children") // missing without CONFIG_PROC_CHILDREN
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			found = true
		}
	}
	return found
}

// childOf returns the child of a shim that the shim knows by the number pid, or 0. A shim in its own PID namespace
// knows it by another number than the server (NSpid in proc_pid_status(5)).
func childOf(shim, pid int) int {
	for _, child := range below(shim) {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(child) + "/status") // an error means that it has ended
		_, numbers, _ := bytes.Cut(status, []byte("\nNSpid:"))
		numbers, _, _ = bytes.Cut(numbers, []byte("\n"))
		if fields := bytes.Fields(numbers); len(fields) > 0 && string(fields[len(fields)-1]) == strconv.Itoa(pid) {
			return child
		}
	}
	return 0
}

// below returns the descendants of a process, its children first. The kernel lists them in less time than it takes to
// search the process table, but it may leave one out if another ends at that moment.
func below(root int) []int {
	found, listed := new(sandbox.Meter).Descendants(root, nil)
	if !listed {
		for _, p := range descendants(root, processes()) {
			found = append(found, p.pid)
		}
	}
	return found
}

// Busy reports whether a thread of the program is running, or waiting for a processor or the disk
// (proc_pid_stat(5)).
func (p *Process) Busy() bool {
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(p.PID()) + "/task/*/stat")
	return slices.ContainsFunc(threads, func(file string) bool {
		raw, err := os.ReadFile(file) // an error means that the thread has ended
		state := bytes.TrimSpace(raw[bytes.LastIndexByte(raw, ')')+1:])
		return err == nil && len(state) > 0 && (state[0] == 'R' || state[0] == 'D')
	})
}

// proc is one entry of the process table.
type proc struct {
	pid, parent, group, session int

	name   string
	zombie bool
}

// processes reads the process table.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	table := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readStat(pid); ok {
			table = append(table, p)
		}
	}
	return table
}

// readStat reads /proc/<pid>/stat. The name in it may contain anything, including spaces and parentheses, so
// the fields are counted from the last parenthesis.
func readStat(pid int) (proc, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return proc{}, false
	}
	fields := strings.Fields(string(raw[end+1:]))
	if len(fields) < 4 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	session, err3 := strconv.Atoi(fields[3])
	if err1 != nil || err2 != nil || err3 != nil {
		return proc{}, false
	}
	return proc{pid: pid, parent: parent, group: group, session: session, name: string(raw[open+1 : end]), zombie: fields[0] == "Z"}, true
}

// descendants returns the processes of table below root, without root.
func descendants(root int, table []proc) []proc {
	below := map[int]bool{root: true}
	var found []proc
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if below[p.parent] && !below[p.pid] {
				below[p.pid] = true
				found = append(found, p)
				grown = true
			}
		}
	}
	return found
}

// Protect prevents other processes of the same user from tracing this one and from reading its memory,
// environment and descriptors. It also disables core dumps. Root is not affected.
func Protect() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// mappingAttributes starts a process in its own user namespace and stops it right away.
func mappingAttributes(owner sandbox.Owner, uid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setpgid: true, Ptrace: true, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: owner.UID, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: owner.GID, HostID: uid, Size: 1}},
	}
}
