package table

import (
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

func TestEachComparedRowIsTheMedianOfTheRounds(t *testing.T) {
	b := &bench{}
	b.compareBuilds("call c=16", load.Plan{}, rates(96, 300, 20), rates(100, 100, 20)) // 0.96, 3, 1
	b.compareFigures("memory", "MB", []float64{30, 50, 20}, []float64{20, 50, 20})     // 1.5, 1, 1
	if r := b.rows[0]; r.Reached != 1 || !r.Good() || !strings.Contains(r.Figure, "against the other build") {
		t.Errorf("%+v", r)
	}
	if r := b.rows[2]; r.Reached != 1 || !r.Less || !r.Good() {
		t.Errorf("%+v", r)
	}
	b.rows = nil
	b.compareFigures("memory", "MB", []float64{30}, nil)
	if len(b.rows) != 0 {
		t.Errorf("a row without another build: %+v", b.rows)
	}
}

func TestFixedRateRowsCompareTheDurationsOfTheBuilds(t *testing.T) {
	sampled := func(p50, p99 time.Duration) []sample {
		return []sample{{Result: load.Result{P50: p50, P99: p99}, cpu: time.Millisecond}}
	}
	b := &bench{}
	b.compareBuilds("200 calls/s", load.Plan{Rate: 200}, sampled(2*time.Millisecond, 9*time.Millisecond), sampled(2*time.Millisecond, 3*time.Millisecond))
	var reached []float64
	for _, r := range b.rows {
		reached = append(reached, r.Reached)
	}
	if len(b.rows) != 3 || reached[0] != 1 || reached[1] != 3 || reached[2] != 1 || b.rows[1].Good() {
		t.Errorf("%+v", b.rows)
	}
}

func TestTheAddressIsReadFromTheLogOfEveryBuild(t *testing.T) {
	for line, want := range map[string]string{
		`{"level":"info","msg":"server listening","home":"/h","url":"http://127.0.0.1:3","version":"dev"}`:            "http://127.0.0.1:3/mcp",
		`{"@level":"info","@message":"The server answers","home":"/h","url":"http://127.0.0.1:4","workspace":"ws_d"}`: "http://127.0.0.1:4/mcp",
		`{"level":"warn","msg":"identity provider unavailable","url":"http://127.0.0.1:5"}`:                           "",
		`not JSON`: "",
	} {
		if got := serviceURL(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
