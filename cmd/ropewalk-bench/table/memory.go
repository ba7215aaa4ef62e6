package table

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/cmd/ropewalk-bench/load"
)

// memory measures what the process holds with sessions open, 300 tools, and what an idle GET
// stream adds.
func (b *bench) memory(ctx context.Context) error {
	ours, err := b.service(ctx, service{name: "memory", bundle: manyBundle}, "")
	if err != nil {
		return err
	}
	direct, err := b.rival(ctx, "direct, 300 tools", "rival", "direct", "--tools", manyTools)
	if err != nil {
		return err
	}
	var at [2]map[int]float64
	var perStream [2]float64
	for i, c := range []contestant{ours, direct} {
		if at[i], perStream[i], err = b.hold(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for _, n := range []int{64, 1000} {
		b.limit(fmt.Sprintf("memory at rest after %d sessions, 300 tools", n), map[int]float64{64: 40, 1000: 60}[n], "MB", at[0][n],
			fmt.Sprintf("%.1f MB", at[0][n]), fmt.Sprintf("%.1f MB (direct)", at[1][n]))
	}
	b.limit("memory per idle GET stream", 18, "KB", perStream[0], fmt.Sprintf("%.1f KB", perStream[0]), fmt.Sprintf("%.1f KB (direct)", perStream[1]))
	return nil
}

// rest is how long a server is left alone before its memory is read, so that the figure is what it
// holds and not what it has just let go of.
const rest = 5 * time.Second

// hold opens 1,000 sessions, each with a list and a call, and then the stream of each. It returns
// the memory in MB after some numbers of sessions, and in KB per stream.
func (b *bench) hold(ctx context.Context, c contestant) (after map[int]float64, perStream float64, err error) {
	var sessions []*load.Client
	defer func() {
		for _, s := range sessions {
			s.Hangup()
		}
	}()
	after = map[int]float64{}
	for n := 1; n <= 1000 && ctx.Err() == nil; n++ {
		s, err := load.Dial(c.target)
		if err != nil {
			return nil, 0, err
		}
		sessions = append(sessions, s)
		if err := firstOf(s.Open(), s.List(), s.Call()); err != nil {
			return nil, 0, err
		}
		s.Hangup() // the session stays
		if n == 64 || n == 1000 {
			time.Sleep(rest)
			held, err := c.memory()
			if err != nil {
				return nil, 0, err
			}
			after[n] = float64(held) / 1e6
		}
	}
	perStream, err = b.streams(c, sessions)
	return after, perStream, err
}

func (b *bench) streams(c contestant, sessions []*load.Client) (float64, error) {
	before, err := c.memory()
	if err != nil {
		return 0, err
	}
	for _, s := range sessions {
		stream, err := s.Stream()
		if err != nil {
			return 0, err
		}
		defer func() { _ = stream.Close() }()
	}
	time.Sleep(rest)
	after, err := c.memory()
	return float64(after-before) / 1000 / float64(len(sessions)), err
}
