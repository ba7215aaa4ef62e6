package process

import (
	"os"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// watchLimits measures the tree until it exceeds a limit, which it reports on exceeded. A tree that uses more
// than its processor time is paused for a while after each measurement.
func (s *shim) watchLimits(l sandbox.Limits, exceeded chan<- string) {
	if l.Memory == 0 && l.Processes == 0 && l.CPU == 0 {
		return
	}
	var m meter
	for {
		<-time.After(sandbox.WatchInterval)
		total := m.measure()
		if l.Memory > 0 && total.Memory > l.Memory {
			total.Memory = m.sharedFairly()
		}
		if s.ownIPC {
			total.Memory += sandbox.IPCMemory(total.Processes)
		}
		if reason := l.Exceeded(total); reason != "" {
			exceeded <- reason
			return
		}
		if pause := l.Pause(total.CPUTime, sandbox.WatchInterval); pause > 0 {
			signalTree(s.child, syscall.SIGSTOP)
			<-time.After(pause)
			signalTree(s.child, syscall.SIGCONT)
		}
	}
}

// meter measures the tree of this shim.
type meter struct {
	sandbox.Meter
	tree        []int                 // the processes of the last measurement
	before, now map[int]time.Duration // the processor time of each process in the last measurements
}

// measure returns the usage of the tree, including processor time since the last measurement.
func (m *meter) measure() (total sandbox.Usage) {
	self := os.Getpid()
	var listed bool
	if m.tree, listed = m.Descendants(self, m.tree[:0]); !listed {
		for _, p := range descendants(self, processes()) {
			m.tree = append(m.tree, p.pid)
		}
	}
	if m.before, m.now = m.now, m.before; m.now == nil {
		m.now = map[int]time.Duration{}
	}
	clear(m.now)
	for _, pid := range m.tree {
		u, zombieOf, ok := m.Usage(pid)
		if !ok || zombieOf == self { // the shim is about to reap it
			continue
		}
		m.now[pid] = u.CPUTime
		u.CPUTime -= m.before[pid]
		total = total.Add(u)
	}
	return total
}

// sharedFairly returns the memory of the tree without counting shared memory twice. It is more expensive, so it
// is called only when the simple sum exceeds the limit.
func (m *meter) sharedFairly() (sum int64) {
	for _, pid := range m.tree {
		if memory, ok := sandbox.SharedFairly(pid); ok {
			sum += memory
		} else if u, _, ok := m.Usage(pid); ok {
			sum += u.Memory
		}
	}
	return sum
}
