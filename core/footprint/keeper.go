package footprint

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent is the GOGC value. With the runtime's default of 100, a call spends twice as much time on
	// garbage collection; 400 uses twice the memory.
	gcPercent = 200

	checkInterval = 2 * time.Second
	idleBytes     = 8 << 20 // a process that allocates less between two checks is idle
)

// Pace sets the garbage collection target to gcPercent, unless the operator has set GOGC. gogc is the value of GOGC.
func Pace(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Keep returns free memory to the system each time the process becomes idle. It returns when ctx ends.
func Keep(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	k := keeper{busy: true, before: allocated()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if k.becameIdle(allocated()) {
				debug.FreeOSMemory()
			}
		}
	}
}

// keeper detects the end of a busy period.
type keeper struct {
	busy   bool
	before uint64 // bytes allocated up to the last check
}

// becameIdle reports whether the process has just become idle. now is the number of bytes allocated so far.
func (k *keeper) becameIdle(now uint64) bool {
	active := now-k.before >= idleBytes
	idle := k.busy && !active
	k.busy, k.before = active, now
	return idle
}

// allocated returns how many bytes the process has ever allocated on its heap.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
