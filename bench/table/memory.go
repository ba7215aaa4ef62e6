package table

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/bench/load"
)

// memoryRounds is how many times memory is measured, each time with newly started servers.
const memoryRounds = 3

// memoryUse is the memory of a server with 300 tools.
type memoryUse struct {
	fewSessions, manySessions float64 // with 64 and 1,000 sessions, in MB
	stream                    float64 // per idle GET stream, in KB
}

// memory measures the memory of the process with open sessions and 300 tools, and how much an idle GET stream
// adds.
func (b *bench) memory(ctx context.Context) error {
	var ours, direct, other []memoryUse
	for range memoryRounds {
		round, err := b.memoryRound(ctx)
		b.stopAll()
		if err != nil {
			return err
		}
		ours, direct, other = append(ours, round[0]), append(direct, round[1]), append(other, round[2:]...)
	}
	for _, f := range []struct {
		figure, unit string
		most         float64
		of           func(memoryUse) float64
	}{
		{"memory at rest after 64 sessions, 300 tools", "MB", 30, func(h memoryUse) float64 { return h.fewSessions }},
		{"memory at rest after 1000 sessions, 300 tools", "MB", 60, func(h memoryUse) float64 { return h.manySessions }},
		{"memory per idle GET stream", "KB", 18, func(h memoryUse) float64 { return h.stream }},
	} {
		own, rival := figures(ours, f.of), figures(direct, f.of)
		b.limit(f.figure, f.most, f.unit, median(own), fmt.Sprintf("%.1f %s", median(own), f.unit), fmt.Sprintf("%.1f %s (direct)", median(rival), f.unit))
		b.compareFigures(f.figure, f.unit, figures(ours, f.of), figures(other, f.of))
	}
	return nil
}

func figures(all []memoryUse, of func(memoryUse) float64) []float64 {
	values := make([]float64, len(all))
	for i, h := range all {
		values[i] = of(h)
	}
	return values
}

// memoryRound measures servers that it starts at the same time: the service, the direct server, and the other
// build of the service if there is one.
func (b *bench) memoryRound(ctx context.Context) ([]memoryUse, error) {
	ours, err1 := b.service(ctx, service{name: "memory", bundle: manyBundle}, "")
	direct, err2 := b.rival(ctx, "direct, 300 tools", "rival", "direct", "--tools", manyTools)
	if err := firstOf(err1, err2); err != nil {
		return nil, err
	}
	servers := []contestant{ours, direct}
	if ours.other != nil {
		servers = append(servers, *ours.other)
	}
	all, errs := make([]memoryUse, len(servers)), make([]error, len(servers))
	var measured sync.WaitGroup
	for i, c := range servers {
		measured.Go(func() {
			if all[i], errs[i] = b.measureSessions(ctx, c); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", c.name, errs[i])
			}
		})
	}
	measured.Wait()
	return all, errors.Join(errs...)
}

// settleTime is how long a server is left idle before its memory is measured, so that memory that it has just
// released is not included.
const settleTime = 5 * time.Second

// measureSessions opens 1,000 sessions with a list and a call each, and then a stream for each session.
func (b *bench) measureSessions(ctx context.Context, c contestant) (h memoryUse, err error) {
	var sessions []*load.Client
	defer func() {
		for _, s := range sessions {
			s.Hangup()
		}
	}()
	for n := 1; n <= 1000 && ctx.Err() == nil; n++ {
		s, err := load.Dial(c.target)
		if err != nil {
			return h, err
		}
		sessions = append(sessions, s)
		if err := firstOf(s.Open(), s.List(), s.Call()); err != nil {
			return h, err
		}
		s.Hangup() // the session stays open
		if n != 64 && n != 1000 {
			continue
		}
		time.Sleep(settleTime)
		resident, err := c.memory()
		if err != nil {
			return h, err
		}
		if h.manySessions = float64(resident) / 1e6; n == 64 {
			h.fewSessions = h.manySessions
		}
	}
	h.stream, err = b.streams(c, sessions)
	return h, errors.Join(err, ctx.Err())
}

// streams opens the GET stream of each session and returns how much memory one stream adds, in KB.
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
	time.Sleep(settleTime)
	after, err := c.memory()
	return float64(after-before) / 1000 / float64(len(sessions)), err
}
