//go:build unix

package footprint

import (
	"syscall"
	"time"
)

// processorTime is how much processor time the process has used, its own and the system's for it.
func processorTime() (time.Duration, bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
