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
	before := map[int]time.Duration{}
	for {
		<-time.After(sandbox.WatchInterval)
		total, now := measure(before)
		before = now
		if l.Memory > 0 && total.Memory > l.Memory {
			total.Memory = sharedFairly()
		}
		if s.ownIPC {
			total.Memory += sandbox.DetachedMemory()
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

// measure returns what the tree uses, including processor time since the last measurement, and the processor
// time of each process.
func measure(before map[int]time.Duration) (total sandbox.Usage, now map[int]time.Duration) {
	now = map[int]time.Duration{}
	for _, p := range descendants(os.Getpid(), processes()) {
		u, ok := sandbox.ProcessUsage(p.pid)
		if !ok || p.zombie && p.parent == os.Getpid() { // the shim is about to reap it
			continue
		}
		now[p.pid] = u.CPUTime
		u.CPUTime -= before[p.pid]
		total = total.Add(u)
	}
	return total, now
}

// sharedFairly returns the memory of the tree without counting shared memory twice. It is more expensive, so it
// is called only when the simple sum exceeds the limit.
func sharedFairly() (sum int64) {
	for _, p := range descendants(os.Getpid(), processes()) {
		if memory, ok := sandbox.SharedFairly(p.pid); ok {
			sum += memory
		} else if u, ok := sandbox.ProcessUsage(p.pid); ok {
			sum += u.Memory
		}
	}
	return sum
}
