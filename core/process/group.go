package process

import (
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// make creates the group for a tree, or returns nil if there is no cgroup tree.
func (c Cgroup) make() (*cgroup.Group, error) {
	if c.Tree == nil {
		return nil, nil
	}
	return c.Tree.New(c.Name, c.Limits)
}

// removeGroup removes the group of a tree that did not start.
func removeGroup(g *cgroup.Group) error {
	if g == nil {
		return nil
	}
	return g.Remove()
}

// watchGroup ends a tree that has more processes than its limit allows. The kernel itself enforces memory limits.
func (p *Process) watchGroup() {
	tick := time.NewTicker(sandbox.WatchInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		if over := p.group.Exceeded(); over != "" {
			p.over.Store(&over)
			_ = p.group.Kill() // on an error, a process is stuck in the kernel
			return
		}
	}
}

// overGroup returns the limit that the tree exceeded when watchGroup ended it, or "".
func (p *Process) overGroup() string {
	if over := p.over.Load(); over != nil {
		return *over
	}
	return ""
}

// shimKilled reports whether the shim, which was waited for, was killed. Its descendants have then become
// children of the server.
func (p *Process) shimKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
