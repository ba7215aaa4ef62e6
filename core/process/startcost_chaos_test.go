//go:build linux && chaos

package process_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/chaos"
)

const (
	costStarts = 20
	costCalls  = 2000
	maxMore    = 10 * time.Millisecond // how much longer a start in the sandbox may take
	maxSlower  = 1.1                   // ratio of call durations; allows for measurement noise
)

// The test alternates between the levels, so that other work on the machine affects all of them.
func TestTheSandboxBarelySlowsDownStartsAndCalls(t *testing.T) {
	levels := []sandbox.Level{sandbox.LevelNone, sandbox.LevelLandlock, sandbox.LevelNamespaces}
	starts := make([][]time.Duration, len(levels))
	calls := make([][]time.Duration, len(levels))
	running := make([]*process.Process, len(levels))
	for i, level := range levels {
		c := confined(t, level, "")
		c.Path, c.Args = "/bin/cat", nil
		running[i] = start(t, c)
	}
	for range costStarts {
		for i, level := range levels {
			starts[i] = append(starts[i], timeStart(t, level))
		}
	}
	for range costCalls {
		for i := range levels {
			calls[i] = append(calls[i], timeEcho(t, running[i]))
		}
	}
	for i, level := range levels[1:] {
		more, ratio := median(starts[i+1])-median(starts[0]), float64(median(calls[i+1]))/float64(median(calls[0]))
		chaos.Record(t, chaos.Row{
			Number: "Start of an app", OK: more <= maxMore && ratio <= maxSlower,
			Done:     fmt.Sprintf("%d starts and %d calls, alternating between %s and none", costStarts, costCalls, level),
			Figure:   fmt.Sprintf("a start takes %.1f ms longer, a call %.2f times as long", more.Seconds()*1000, ratio),
			Required: fmt.Sprintf("at most %v longer, %.1f times", maxMore, maxSlower),
		})
	}
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// timeStart returns how long a program takes at a level, from start to exit.
func timeStart(t *testing.T, level sandbox.Level) time.Duration {
	t.Helper()
	c := confined(t, level, "")
	c.Path, c.Args = "/bin/true", nil
	began := time.Now()
	p, err := process.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	took := time.Since(began)
	if err := p.Stdout().Close(); err != nil {
		t.Fatal(err)
	}
	return took
}

// timeEcho returns how long a running cat takes to repeat a line.
func timeEcho(t *testing.T, p *process.Process) time.Duration {
	t.Helper()
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	began := time.Now()
	if _, err := p.Stdin().Write(line); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Stdout(), line); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
