package process

import (
	"fmt"
	"math/bits"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// leastShares is in how many parts the tasks are divided at least: one app does not get all of them.
const leastShares = 8

// shimTasks are those of a shim, beside the program's.
const shimTasks = 16

// taskBudget is how many threads and processes all apps together may have, so that the server can go on starting threads:
// it shares the limit of its user, and those of its cgroup and of the machine, with them. A group that holds the
// processes of apps holds the latter two as well. 0 is no limit.
func taskBudget(group *cgroup.Group) int {
	limit := int64(0)
	restrict := func(n int64) {
		if n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	var user unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &user); err == nil && os.Geteuid() != 0 && user.Cur < 1<<32 {
		restrict(int64(user.Cur))
	}
	if !group.Bounds().Processes {
		restrict(cgroup.HostTasks())
		restrict(cgroup.OwnTasks())
	}
	return int(cgroup.LeaveTasks(min(limit, 1<<32)))
}

// shareOf is the part of a budget for one of n apps. It is the same for numbers of apps between two powers of two, so
// that it seldom has to change.
func shareOf(budget, n int) int {
	shares := max(leastShares, 1<<bits.Len(uint(n-1)))
	return max(budget/shares-shimTasks, 1)
}

// taskLimit is how many threads and processes a program may have that is one of n; 0 for no limit. Where the kernel counts
// those of apps apart, each gets a share of what the server leaves to all of them. Elsewhere it counts those of the
// server's user, and the limit is what all may have.
func taskLimit(p *sandbox.Profile, group *cgroup.Group, n int) int {
	limit := taskBudget(group)
	if !p.OwnTasks() {
		return limit
	}
	if limit > 0 {
		limit = shareOf(limit, n)
	}
	if most := p.Limits.Threads(); most > 0 && (limit == 0 || most < limit) {
		return most
	}
	return limit
}

// tasks is the taskLimit of a program that is about to start.
func (s *shims) tasks(p *sandbox.Profile, group *cgroup.Group) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return taskLimit(p, group, s.sharing()+1)
}

// sharing is how many programs have a share.
func (s *shims) sharing() (n int) {
	for _, p := range s.running {
		if p != nil {
			n++
		}
	}
	return n
}

// share records that a confined program runs. When there are more of them than shares, all shares get smaller.
func (s *shims) share(p *Process) {
	if !p.sandbox.OwnTasks() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[p.cmd.Process.Pid] = p
	n := s.sharing()
	if n <= leastShares || bits.Len(uint(n-1)) == bits.Len(uint(n-2)) {
		return
	}
	for _, other := range s.running {
		if other != nil {
			_, _ = fmt.Fprintf(other.socket.server, "tasks %d\n", taskLimit(other.sandbox, other.group, n)) // a shim that has gone needs none
		}
	}
}
