package table

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

// latency measures the duration of calls at a fixed rate, below what the servers can handle. Users notice this
// duration, while the throughput at saturation determines the cost of operation.
func (b *bench) latency(ctx context.Context) error {
	relay, err1 := b.rival(ctx, "relay", append([]string{"rival", "relay"}, sdkBundle...)...)
	ours, err2 := b.service(ctx, service{name: "paced", bundle: sdkBundle}, "")
	if err := firstOf(err1, err2); err != nil {
		return err
	}
	for _, rate := range []float64{200, 2000} {
		what := fmt.Sprintf("%.0f calls/s, c=16", rate)
		p := load.Plan{Kind: load.Calls, Concurrency: 16, Rate: rate, Duration: max(b.span, time.Second)}
		got, err := b.race(ctx, what, p, relay, ours)
		if err != nil {
			return err
		}
		b.compareDurations(what+": p50 against the bare relay", 1, got[1], got[0], sample.p50)
		b.compareDurations(what+": p99 against the bare relay", 1, got[1], got[0], sample.p99)
	}
	return nil
}
