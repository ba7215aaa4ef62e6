package sandbox

import (
	"fmt"
	"time"
)

// WatchInterval is how often the use of a tree is measured.
const WatchInterval = 200 * time.Millisecond

// threadsPerProcess is more than the average of a tree. A thread takes one of the machine's process ids, too.
const threadsPerProcess = 16

// Exceeded is the limit that u is over, in a sentence; "" for none.
func (l Limits) Exceeded(u Usage) string {
	switch {
	case l.Memory > 0 && u.Memory > l.Memory:
		return fmt.Sprintf("used %d MiB of memory and may use %d MiB", u.Memory>>20, l.Memory>>20)
	case l.Processes > 0 && u.Processes > l.Processes:
		return fmt.Sprintf("had %d processes and may have %d", u.Processes, l.Processes)
	case l.Processes > 0 && u.Threads > l.Threads():
		return fmt.Sprintf("had %d threads and may have %d", u.Threads, l.Threads())
	}
	return ""
}

// Threads is how many threads a tree may have.
func (l Limits) Threads() int { return l.Processes * threadsPerProcess }

// Pause is how long a tree is to be stopped that used this much processor time in the last interval.
func (l Limits) Pause(used, interval time.Duration) time.Duration {
	allowed := time.Duration(l.CPU * float64(interval))
	if l.CPU <= 0 || used <= allowed {
		return 0
	}
	return time.Duration(float64(used-allowed) / l.CPU)
}

// Add is the sum of two.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		Memory: u.Memory + other.Memory, Processes: u.Processes + other.Processes, Threads: u.Threads + other.Threads, CPUTime: u.CPUTime + other.CPUTime,
	}
}
