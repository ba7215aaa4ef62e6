package footprint

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The parts of the memory that the process may use.
const (
	baseMemory  = 64 << 20 // what the server holds without any call
	perByte     = 8        // bytes of memory that are set aside for each byte of a request in flight
	leastBudget = 16 << 20 // bytes in flight that are always allowed: the largest body of one request
	ofMachine   = 2        // without a limit, the part of the machine's memory that the server may use
	ofCgroup    = 0.75     // the apps of the server are in its cgroup
)

// Limit sets the memory that the garbage collector aims for and returns it, bytes. The limit is that of
// GOMEMLIMIT, which the runtime has applied already, else three quarters of the limit of the process's
// cgroup. Without either the collector has no limit, and half of the machine's memory is returned.
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

// InFlight is how many bytes of requests may be in flight in a process that may use limit bytes of
// memory.
func InFlight(limit int64) int64 { return max((limit-baseMemory)/perByte, leastBudget) }
