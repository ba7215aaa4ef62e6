package process

import (
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// EndLeftovers kills the processes of apps whose shim and server were killed, and returns how many there were. They
// cannot start others in the meantime: at the lower level of the sandbox, that takes a shim.
func EndLeftovers() (ended int) {
	seen := map[int]bool{}
	var before []int
	for until := time.Now().Add(sweepLimit); time.Now().Before(until); <-time.After(killPause) {
		left := leftovers(processes(), sandbox.IsMarked)
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			if slices.Contains(before, pid) { // a process that ends while the table is read can make its child look left over
				seen[pid] = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		before = left
	}
	return len(seen)
}

// leftovers returns the marked processes of table that no server controls. All processes of an app are marked, and so is
// its shim, which is in the session of its server. Everything else that is marked is in a session that an app created.
// If there is no shim above it, its parent is another program, in another session. An app cannot pretend to be a
// shim there: it cannot get rid of the mark, or join a session.
func leftovers(table []proc, isMarked func(pid int) bool) (left []int) {
	all, marked := map[int]proc{}, map[int]bool{}
	for _, p := range table {
		all[p.pid] = p
		if !p.zombie && isMarked(p.pid) {
			marked[p.pid] = true
		}
	}
	for pid := range marked {
		top := all[pid]
		for steps := 0; marked[top.parent] && steps < len(table); steps++ { // the table may contain a cycle: process ids are used again
			top = all[top.parent]
		}
		above, listed := all[top.parent]
		if !listed && isMarked(top.parent) { // the mount option hidepid hides a shim, whose memory is not dumpable, even from its own user
			continue
		}
		if above.session != top.session && !slices.ContainsFunc(descendants(top.pid, table), func(p proc) bool { return p.pid == os.Getpid() }) {
			left = append(left, pid)
		}
	}
	return left
}
