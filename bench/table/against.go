package table

import (
	"fmt"

	"github.com/ropewalk/ropewalk/bench/load"
)

// otherBuild is the suffix of the name of a service that runs the executable to compare with.
const otherBuild = ", other build"

// The limits for the ratio of our figure to the other build's. A smaller difference is noise.
const (
	leastOfOther = 0.97
	mostOfOther  = 1 / leastOfOther
)

// compareBuilds adds the rows of one race that compare the two builds of the service. At a fixed rate the rows compare
// call durations, otherwise calls per second. Both also compare CPU cost.
func (b *bench) compareBuilds(what string, p load.Plan, ours, other []sample) {
	if p.Rate > 0 {
		b.compareDurations(what+": p50 against the other build", mostOfOther, ours, other, sample.p50)
		b.compareDurations(what+": p99 against the other build", mostOfOther, ours, other, sample.p99)
	} else {
		b.compareRates(what+": requests/s against the other build", leastOfOther, ours, other)
	}
	b.compareCPU(what+": CPU per request against the other build", mostOfOther, ours, other)
}

// compareFigures adds a row that compares the two builds of the service by a figure that should be small. If there is no
// other build, it adds nothing.
func (b *bench) compareFigures(figure, unit string, ours, other []float64) {
	if len(other) == 0 {
		return
	}
	ratios := make([]float64, 0, len(ours))
	for i := range min(len(ours), len(other)) {
		ratios = append(ratios, ours[i]/other[i])
	}
	b.rows = append(b.rows, Row{
		Figure: figure + ": against the other build", Must: mostOfOther, Less: true, Reached: median(ratios),
		Ours: fmt.Sprintf("%.1f %s", median(ours), unit), Theirs: fmt.Sprintf("%.1f %s", median(other), unit),
	})
}
