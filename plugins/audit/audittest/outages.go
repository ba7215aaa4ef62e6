package audittest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

const (
	comeback = 15 * time.Second       // how long a sink may take to find its backend again
	short    = 300 * time.Millisecond // the deadline of a call to a backend that does not answer
	patience = 2 * time.Second        // how long after its deadline a call may return
)

// away takes the backend away while look runs, and brings it back.
func (s Subject) away(ctx context.Context, fail func(context.Context) error, look func() error) (err error) {
	if err := fail(ctx); err != nil {
		return kit.Failf("take the backend away: %w", err)
	}
	defer func() {
		if started := s.Backend.Start(context.WithoutCancel(ctx)); started != nil {
			err = errors.Join(err, kit.Failf("bring the backend back: %w", started))
		}
	}()
	return look()
}

// begun returns a stream with one record, written while the backend is there.
func (s Subject) begun(ctx context.Context) (string, error) {
	if s.Backend == nil {
		return "", kit.Skip("nothing was given to take the backend away with")
	}
	stream := newStream()
	return stream, s.patiently(ctx, stream, batch(1, 1))
}

// patiently writes until the sink has found its backend again.
func (s Subject) patiently(ctx context.Context, stream string, records []audit.Record) error {
	for until := time.Now().Add(comeback); ; {
		err := s.Sink.Write(ctx, stream, records)
		if err == nil || !errors.Is(err, plugins.ErrUnavailable) || time.Now().After(until) || ctx.Err() != nil {
			if err != nil {
				return kit.Failf("Write with the backend there again: %w", err)
			}
			return nil
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

func mustBeUnavailable(err error) error {
	if !errors.Is(err, plugins.ErrUnavailable) {
		return kit.Failf("Write must return plugins.ErrUnavailable (UNAVAILABLE) while the backend is away; it returned %v", err)
	}
	return nil
}

func writeIsUnavailable(ctx context.Context, s Subject) error {
	stream, err := s.begun(ctx)
	if err != nil {
		return err
	}
	return s.away(ctx, s.Backend.Stop, func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for n := uint64(2); n <= 4; n++ {
			if err := mustBeUnavailable(s.Sink.Write(ctx, stream, batch(n, n))); err != nil {
				return err
			}
		}
		return nil
	})
}

func returnsByDeadline(ctx context.Context, s Subject) error {
	stream, err := s.begun(ctx)
	if err != nil {
		return err
	}
	return s.away(ctx, s.Backend.Stall, func() error {
		ctx, cancel := context.WithTimeout(ctx, short)
		defer cancel()
		began := time.Now()
		err := s.Sink.Write(ctx, stream, batch(2, 2))
		if took := time.Since(began); took > short+patience {
			return kit.Failf("Write with a deadline of %s must return soon after it; it took %s", short, took.Round(time.Millisecond))
		}
		return mustBeUnavailable(err)
	})
}

func keptAfterwards(ctx context.Context, s Subject) error {
	stream, err := s.begun(ctx)
	if err != nil {
		return err
	}
	kept, err := s.kept(ctx, stream)
	if err != nil {
		return err
	}
	want := slices.Concat(kept, batch(2, 6))
	err = s.away(ctx, s.Backend.Stop, func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return mustBeUnavailable(s.Sink.Write(ctx, stream, want[1:4]))
	})
	if err != nil {
		return err
	}
	if err := s.patiently(ctx, stream, want[1:]); err != nil {
		return err
	}
	return s.has(ctx, stream, want)
}
