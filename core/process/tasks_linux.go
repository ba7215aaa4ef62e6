package process

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// How many tasks a program gets, including those of its shim. A browser with one page has 150, and with several pages
// up to 400.
const (
	usualShare = 512
	manyShares = 256 // on a machine that has many tasks, a share is this part of all if that is more than usualShare
	fewShares  = 8   // a share is at most this part of what is left, so that a few programs do not get everything
	// manyPrograms is how many programs of one user have room in a share: an app has one for each of some sessions, up to
	// mcp.maxInstances, and the limits of those that run cannot be raised for the next.
	manyPrograms = 2
	leastShare   = 64 // Node.js has 11 tasks, and a package manager that starts it as many again
)

// shimTasks is how many tasks a shim needs for itself.
const shimTasks = 16

// share is how many threads and processes the kernel lets a program have. It never changes while the program runs. To
// take tasks back, the server would have to find every process that may still start more. A hostile app starts and ends
// them faster than they are found.
type share struct {
	tasks    int
	uid      int // the user whose tasks the kernel counts, of all programs together; 0 if it counts each program's
	programs int // that are running
}

// grant returns the share of a program that is about to start, to be released when it has ended. Together, the shares
// never exceed what the server leaves for apps. The server shares the limits of its user, its cgroup and the machine
// with them, and must still be able to start threads.
func (s *shims) grant(p *sandbox.Profile, group *cgroup.Group) (*share, error) {
	most := p.Limits.Threads()
	switch { // the group of all apps leaves the server its tasks
	case group.Bounds().Processes && p.OwnTasks():
		return &share{tasks: most}, nil
	case group.Bounds().Processes:
		return &share{}, nil
	}
	limit, name := cgroup.SharedTasks()
	budget := int(cgroup.LeaveTasks(min(limit, math.MaxInt32)))
	if !p.OwnTasks() { // the kernel counts all tasks of the server's user
		return &share{tasks: budget}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left := budget
	mine := &share{}
	if p.Level < sandbox.LevelNamespaces {
		mine.uid = p.UID
	}
	for other := range s.shares {
		left -= other.tasks + other.programs*shimTasks
		if mine.uid != 0 && other.uid == mine.uid {
			mine = other
		}
	}
	needs := shimTasks
	if mine.programs == 0 {
		usual := max(usualShare, budget/manyShares)
		if mine.uid != 0 {
			usual *= manyPrograms
		}
		mine.tasks = max(min(usual, left/fewShares), leastShare) - shimTasks
		if most > 0 {
			mine.tasks = min(mine.tasks, most)
		}
		needs += mine.tasks
	}
	if left < needs {
		return nil, fmt.Errorf("the running apps may use %d of the %d threads and processes that all apps can have, and this one needs %d (%s is %d, of which the server keeps %d for itself): %w",
			budget-left, budget, needs, name, limit, limit-int64(budget), errBusy)
	}
	mine.programs++
	s.shares[mine] = true
	return mine, nil
}

// release returns a share. It does nothing for nil.
func (s *shims) release(g *share) {
	if g == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.programs--; g.programs <= 0 {
		delete(s.shares, g)
	}
}
