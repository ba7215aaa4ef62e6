package table

import (
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

// sample is the result of one contestant in one round.
type sample struct {
	load.Result
	cpu time.Duration // of the server, per request
}

func (s sample) rate() float64 { return s.PerSec }

// cost returns the server's CPU time per request, in microseconds.
func (s sample) cost() float64 { return float64(s.cpu.Nanoseconds()) / 1000 }

// p50 returns the median duration of a request, in milliseconds.
func (s sample) p50() float64 { return milliseconds(s.P50) }

// p99 returns the 99th percentile of the duration of a request, in milliseconds.
func (s sample) p99() float64 { return milliseconds(s.P99) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ratio returns the median of the ratios of ours to theirs, one per round. The rounds were interleaved.
func ratio(ours, theirs []sample, of func(sample) float64) float64 {
	ratios := make([]float64, 0, len(ours))
	for i := range min(len(ours), len(theirs)) {
		ratios = append(ratios, of(ours[i])/of(theirs[i]))
	}
	return median(ratios)
}

func medianOf(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return median(values)
}

// median returns 0 if there are no values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 1:
		return sorted[n/2]
	default:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
}
