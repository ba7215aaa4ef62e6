package footprint

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The shares of memory that the process may use.
const (
	baseMemory  = 64 << 20 // what the server uses when there are no calls
	perByte     = 8        // bytes of memory reserved for each byte of a request in flight
	leastBudget = 16 << 20 // bytes in flight that are always allowed: the largest body of one request
	ofMachine   = 2        // if there is no limit, the server may use 1/ofMachine of the machine's memory
	ofCgroup    = 0.75     // the rest is for the server's apps, which are in the same cgroup
)

// Limit sets the soft memory limit of the garbage collector and returns it, in bytes. The limit is GOMEMLIMIT,
// which the runtime has already applied, or else three quarters of the cgroup's limit. If there is neither, the
// collector has no limit, and Limit returns half of the machine's memory.
func Limit(gomemlimit string) int64 {
	if gomemlimit != "" {
		if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
			return limit
		}
	}
	if limit, err := memlimit.FromCgroup(); err == nil && limit > 0 && limit < math.MaxInt64 {
		aim := int64(float64(limit) * ofCgroup)
		debug.SetMemoryLimit(aim)
		return aim
	}
	if whole, err := memlimit.FromSystem(); err == nil && whole < math.MaxInt64 {
		return int64(whole / ofMachine)
	}
	return math.MaxInt64
}

// InFlight returns how many bytes of requests may be in flight in a process that may use limit bytes of
// memory.
func InFlight(limit int64) int64 { return max((limit-baseMemory)/perByte, leastBudget) }
