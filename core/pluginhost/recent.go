package pluginhost

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	recentSize = 256             // how many calls are taken into account
	minCalls   = 5               // with fewer calls, a plugin is never considered degraded
	slowCall   = 2 * time.Second // a plugin is degraded when half of its recent calls take longer
)

// recentCalls records how long recent calls took and whether they failed.
type recentCalls struct {
	took   [recentSize]time.Duration
	failed [recentSize]bool
	n      int // total number of calls
}

func (r *recentCalls) add(took time.Duration, failed bool) {
	r.took[r.n%recentSize], r.failed[r.n%recentSize] = took, failed
	r.n++
}

// figures returns the median and the 99th percentile of the recent calls, and, if most of the last 20 failed or were
// slow, how many did.
func (r *recentCalls) figures() (p50, p99 time.Duration, degraded string) {
	n := min(r.n, recentSize)
	if n == 0 {
		return 0, 0, ""
	}
	sorted := slices.Clone(r.took[:n])
	slices.Sort(sorted)
	last, failed, slow := min(n, 20), 0, 0
	for i := r.n - last; i < r.n; i++ {
		switch {
		case r.failed[i%recentSize]:
			failed++
		case r.took[i%recentSize] > slowCall:
			slow++
		}
	}
	if last >= minCalls && 2*(failed+slow) > last {
		degraded = fmt.Sprintf("of the last %d calls, %d failed and %d took longer than %v", last, failed, slow, slowCall)
	}
	return sorted[n/2], sorted[min(n-1, n*99/100)], degraded
}

// residentBytes returns the resident memory of a process, or 0 if it is unknown.
func residentBytes(pid int) uint64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize()) //nolint:gosec // a page size is positive
}
