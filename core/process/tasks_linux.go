package process

import (
	"fmt"
	"math/bits"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// leastShares is the minimum number of shares that the tasks are divided into, so that one app does not get all
// of them.
const leastShares = 8

// shimTasks is how many tasks a shim needs for itself.
const shimTasks = 16

// taskBudget returns how many threads and processes all apps together may have; 0 means no limit. The server shares the
// limits of its user, its cgroup and the machine with the apps, and must still be able to start threads. If a group
// limits the processes of the apps, it also enforces the limits of the cgroup and the machine.
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

// shareOf returns one of n apps' part of a budget. It changes only when n passes a power of two.
func shareOf(budget, n int) int {
	shares := max(leastShares, 1<<bits.Len(uint(n-1)))
	return max(budget/shares-shimTasks, 1)
}

// taskLimit returns how many threads and processes one of n programs may have; 0 means no limit. If the kernel counts
// the tasks of apps separately, each app gets a share of the tasks that the server leaves for all apps. Otherwise it
// counts all tasks of the server's user, and the limit applies to the total.
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

// tasks returns the taskLimit of a program that is about to start.
func (s *shims) tasks(p *sandbox.Profile, group *cgroup.Group) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return taskLimit(p, group, s.sharing()+1)
}

// sharing returns how many programs have a share.
func (s *shims) sharing() (n int) {
	for _, p := range s.running {
		if p != nil {
			n++
		}
	}
	return n
}

// share records that a confined program is running. When there are more programs than shares, all shares
// shrink.
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
			_, _ = fmt.Fprintf(other.socket.server, "tasks %d\n", taskLimit(other.sandbox, other.group, n)) // an error means that the shim has ended
		}
	}
}
