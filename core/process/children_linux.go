package process

import (
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sweepLimit bounds one sweep.
const sweepLimit = 2 * time.Second

// children are the shims that this process started and has not reaped. Any other child of an adopting process is an
// orphan: a process cannot get into this set by taking a shim's name.
//
// There is one set per process because the kernel has one table of children per process.
//
//nolint:gochecknoglobals // see above
var children = shims{running: map[int]bool{}, shares: map[*share]bool{}}

type shims struct {
	mu      sync.Mutex
	running map[int]bool    // by process id
	shares  map[*share]bool // of the running programs
}

// start runs fork, which starts a shim, and records its process id. A sweep never sees a shim that was forked
// but not yet recorded.
func (s *shims) start(fork func() (pid int, err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := fork()
	if err == nil {
		s.running[pid] = true
	}
	return err
}

// reaped removes a shim that was waited for.
func (s *shims) reaped(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, pid)
}

// Adopt makes the server the parent of the processes that a killed shim leaves behind. The kernel may have killed the
// shim because memory ran out, or an operator may have killed it. The program itself dies with its shim anyway, but its
// daemons do not. Call it once, in a process that has only shims as children: after a shim was killed, any other child
// is treated as an orphan and killed.
func Adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

func adopting() bool {
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return err == nil && on == 1
}

// sweepOrphans kills and reaps adopted processes and all their descendants, which are adopted in turn, until
// there are none left.
func sweepOrphans() {
	if !adopting() {
		return
	}
	for until := time.Now().Add(sweepLimit); time.Now().Before(until); <-time.After(killPause) {
		if children.killOrphans() == 0 {
			return
		}
	}
}

// killOrphans kills and reaps the children that are not shims, and returns how many it found.
func (s *shims) killOrphans() (found int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range processes() {
		if s.running[p.pid] || p.parent != os.Getpid() {
			continue
		}
		found++
		if p.zombie {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		} else {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	return found
}
