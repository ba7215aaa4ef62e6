package footprint

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// pace is how much garbage may gather, in percent of what is alive, before it is collected. The
	// runtime's own 100 costs a call twice as much in collections; 400 holds twice the memory.
	pace = 200

	look  = 2 * time.Second // how often it is seen whether the process is busy
	quiet = 8 << 20         // fewer bytes than this allocated between two looks are next to nothing
)

// Pace sets how eagerly garbage is collected, unless the operator has set GOGC.
func Pace(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(pace)
	}
}

// Keep gives memory back to the system each time the process has become quiet, the first time with
// the pages that only its start needed. It returns when ctx ends.
func Keep(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	k := keeper{busy: true, before: allocated()}
	for first := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !k.calmed(allocated()) {
			continue
		}
		if first {
			releaseProgram()
			first = false
		}
		debug.FreeOSMemory()
	}
}

// keeper tells when a busy time ends.
type keeper struct {
	busy   bool
	before uint64 // bytes allocated up to the last look
}

// calmed takes a look, and reports whether the process has just become quiet.
func (k *keeper) calmed(now uint64) bool {
	active := now-k.before >= quiet
	calmed := k.busy && !active
	k.busy, k.before = active, now
	return calmed
}

// allocated is how many bytes the process has ever allocated on its heap.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
