package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// shimName is what ps shows of a shim.
const shimName = "ropewalk-shim"

// sweepLimit bounds one sweep.
const sweepLimit = 2 * time.Second

// Adopt makes the server the parent of what a shim leaves behind that was killed itself, by the
// kernel for lack of memory or by an operator. The program dies with its shim anyway; Adopt is for
// its daemons. Call it once, in a process whose only children are shims: any other child is taken
// for an orphan, and ended, when a shim was killed.
func Adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

func adopting() bool {
	var on int32
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0)
	return errno == 0 && on == 1
}

// sweepOrphans ends and reaps the adopted processes and all below them, which become children in
// their turn, until there are none.
func sweepOrphans() {
	if !adopting() {
		return
	}
	for until := time.Now().Add(sweepLimit); time.Now().Before(until); <-time.After(killPause) {
		left := false
		for _, p := range processes() {
			if p.parent != os.Getpid() || p.name == shimName || !p.zombie && isSelf(p.pid) {
				continue
			}
			left = true
			if p.zombie {
				_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
			} else {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
		}
		if !left {
			return
		}
	}
}

// isSelf reports whether pid is this binary on its way to becoming a shim: a fork that has not
// executed yet, or a shim that has not named itself yet.
func isSelf(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	theirs, err1 := os.Readlink(dir + "/exe")
	ours, err2 := os.Readlink("/proc/self/exe")
	if err1 != nil || err2 != nil || theirs != ours {
		return false
	}
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return false
	}
	own, _ := os.ReadFile("/proc/self/cmdline")
	argv := bytes.Split(line, []byte{0})
	return bytes.Equal(line, own) || len(argv) > 1 && string(argv[1]) == ShimArg
}
