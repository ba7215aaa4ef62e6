package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/bench/load"
)

func rates(perSecond ...float64) []sample {
	var all []sample
	for _, r := range perSecond {
		all = append(all, sample{Result: load.Result{PerSec: r}})
	}
	return all
}

func TestARatioIsTheMedianOfTheRoundsNotARatioOfSums(t *testing.T) {
	b := &bench{}
	b.compareRates("calls", 2, rates(10, 300, 20), rates(5, 100, 20)) // 2, 3, 1
	if r := b.rows[0]; r.Reached != 2 || !r.Good() || r.Ours != "20/s" || r.Theirs != "20/s" {
		t.Errorf("%+v", r)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	if got := median(nil); got != 0 {
		t.Errorf("median of no values %v", got)
	}
}

func TestTheTableShowsWhichFiguresMissTheirTarget(t *testing.T) {
	var out bytes.Buffer
	err := Print(&out, []Row{
		{Figure: "calls", Must: 1.3, Reached: 1.29}, {Figure: "CPU", Must: 1, Less: true, Reached: 0.9},
		{Figure: "memory", Must: 40, Less: true, Unit: "MB", Reached: 40.5},
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err != nil || len(lines) != 4 || !strings.Contains(lines[1], "MISSED") || !strings.Contains(lines[2], "ok") || !strings.Contains(lines[3], "40.5 MB") || !strings.Contains(lines[3], "MISSED") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
