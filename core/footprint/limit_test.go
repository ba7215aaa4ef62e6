package footprint

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTheOperatorsLimitApplies(t *testing.T) {
	before := debug.SetMemoryLimit(300 << 20) // as the runtime does for GOMEMLIMIT
	defer debug.SetMemoryLimit(before)
	if got := Limit("300MiB"); got != 300<<20 || debug.SetMemoryLimit(-1) != 300<<20 {
		t.Errorf("%d bytes", got)
	}
}

func TestAMemoryLimitAppliesByDefault(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	if got := Limit(""); got <= 0 || got == math.MaxInt64 {
		t.Errorf("%d bytes", got)
	}
}

func TestTheBudgetOfBytesFollowsFromTheLimit(t *testing.T) {
	for limit, want := range map[int64]int64{256 << 20: 24 << 20, 10 << 20: leastBudget, 8 << 30: (8<<30 - baseMemory) / perByte} {
		if got := InFlight(limit); got != want {
			t.Errorf("%d bytes: %d in flight, want %d", limit, got, want)
		}
	}
}
