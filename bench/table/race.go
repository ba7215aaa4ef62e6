package table

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

// race puts load on the contestants round by round, and starts each round with a different one. It returns the
// samples by contestant. If a contestant also has another build, both builds are measured, and additional rows
// compare them.
func (b *bench) race(ctx context.Context, what string, p load.Plan, cs ...contestant) ([][]sample, error) {
	runners := slices.Clone(cs)
	for _, c := range cs {
		if c.other != nil {
			other := *c.other
			other.target.Text = c.target.Text
			runners = append(runners, other)
		}
	}
	if p.Duration == 0 {
		p.Duration = b.span
	}
	samples, err := b.sampleRounds(ctx, what, p, runners)
	if err != nil {
		return nil, err
	}
	next := len(cs)
	for i, c := range cs {
		if c.other != nil {
			b.compareBuilds(what+", "+c.name, p, samples[i], samples[next])
			next++
		}
	}
	return samples[:len(cs)], nil
}

// sampleRounds returns the samples of each contestant, one per round.
func (b *bench) sampleRounds(ctx context.Context, what string, p load.Plan, cs []contestant) ([][]sample, error) {
	samples := make([][]sample, len(cs))
	for round := range b.rounds + 1 { // the first round warms up the servers
		for i := range cs {
			at := (i + round) % len(cs)
			s, err := b.sample(ctx, cs[at], p)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", what, cs[at].name, err)
			}
			if round > 0 {
				samples[at] = append(samples[at], s)
			}
		}
	}
	for i, c := range cs {
		_, _ = fmt.Fprintf(b.o.Log, "%-34s %-32s %9.0f/s  p50 %6.2f ms  p99 %6.2f ms  %6.1f us CPU\n", what, c.name,
			medianOf(samples[i], sample.rate), medianOf(samples[i], sample.p50), medianOf(samples[i], sample.p99), medianOf(samples[i], sample.cost))
	}
	return samples, ctx.Err()
}

func (b *bench) sample(ctx context.Context, c contestant, p load.Plan) (sample, error) {
	before, err := c.cpu()
	if err != nil {
		return sample{}, err
	}
	r, err := load.Run(ctx, c.target, p)
	if err != nil {
		return sample{}, err
	}
	after, err := c.cpu()
	if err != nil {
		return sample{}, err
	}
	if r.Failed > 0 || r.Requests == 0 {
		return sample{}, fmt.Errorf("%d of %d requests failed: %s", r.Failed, r.Requests+r.Failed, r.Error)
	}
	return sample{Result: r, cpu: (after - before) / time.Duration(r.Requests)}, nil
}
