package audittest

import (
	"context"
	"errors"
	"sync"

	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// kills is how often a process is killed in one check: what is written a moment after it was acknowledged may
// be lucky once.
const kills = 5

// killed writes to a process and kills it as soon as the last batch is acknowledged; then it returns what
// another process has.
func (s Subject) killed(ctx context.Context, stream string, batches ...[]audit.Record) ([]audit.Record, error) {
	if s.Exclusive && s.Restart != nil {
		return s.restarted(ctx, stream, batches...)
	}
	p, _, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if p.Kill == nil {
		p.Close()
		return nil, kit.Skip("the process cannot be killed")
	}
	for _, b := range batches {
		if err := write(ctx, p.Sink, stream, b); err != nil {
			p.Close()
			return nil, err
		}
	}
	p.Kill()
	p.Close()
	return s.afterwards(ctx, stream)
}

// restarted is killed for the process of Sink.
func (s Subject) restarted(ctx context.Context, stream string, batches ...[]audit.Record) ([]audit.Record, error) {
	if _, err := s.records(); err != nil {
		return nil, err
	}
	for _, b := range batches {
		if err := write(ctx, s.Sink, stream, b); err != nil {
			return nil, err
		}
	}
	if err := s.Restart(ctx); err != nil {
		return nil, kit.Failf("after kill -9 the next process of an exclusive sink must have its backend: %w", err)
	}
	return s.kept(ctx, stream)
}

// afterwards is what a new process has of a stream.
func (s Subject) afterwards(ctx context.Context, stream string) ([]audit.Record, error) {
	p, read, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return all(ctx, read, stream)
}

func survivesKill(ctx context.Context, s Subject) error {
	stream, want := newStream(), batch(1, kills*3)
	for i := 0; i < len(want); i += 3 {
		kept, err := s.killed(ctx, stream, want[i:i+2], want[i+2:i+3])
		if err != nil {
			return err
		}
		if err := same(kept, want[:i+3]); err != nil {
			return kit.Failf("after kill -9 of the process that acknowledged them: %w", err)
		}
	}
	return nil
}

func survivesShutdown(ctx context.Context, s Subject) error {
	p, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	stream, want := newStream(), batch(1, 40)
	for i := 0; i < len(want) && err == nil; i += 10 {
		err = write(ctx, p.Sink, stream, want[i:i+10])
	}
	p.Close()
	if err != nil {
		return err
	}
	kept, err := s.afterwards(ctx, stream)
	if err != nil {
		return err
	}
	if err := same(kept, want); err != nil {
		return kit.Failf("after the process that acknowledged them was ended: %w", err)
	}
	return nil
}

func repeatAfterKill(ctx context.Context, s Subject) error {
	if !s.reads() {
		return kit.Skip(`the sink has not the capability "read"`)
	}
	stream, want := newStream(), batch(1, 10)
	if _, err := s.killed(ctx, stream, want[:4], want[4:8]); err != nil {
		return err
	}
	kept, err := s.killed(ctx, stream, want[4:8], want[6:])
	if err != nil {
		return err
	}
	return same(kept, want)
}

func seenAtOnce(ctx context.Context, s Subject) error {
	other, read, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	stream, want := newStream(), batch(1, 10)
	for i := range want {
		if err := write(ctx, s.Sink, stream, want[i:i+1]); err != nil {
			return err
		}
		kept, err := all(ctx, read, stream)
		if err != nil {
			return err
		}
		if err := same(kept, want[:i+1]); err != nil {
			return kit.Failf("in another process: %w", err)
		}
	}
	return nil
}

func twoProcesses(ctx context.Context, s Subject) error {
	other, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	sinks, names, want := []audit.Sink{s.Sink, other.Sink}, []string{newStream(), newStream()}, batch(1, 100)
	failures := make([]error, len(sinks))
	var writing sync.WaitGroup
	for i, sink := range sinks {
		writing.Go(func() {
			for n := 0; n < len(want) && failures[i] == nil; n += 4 {
				failures[i] = write(ctx, sink, names[i], want[n:n+4])
			}
		})
	}
	writing.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for _, stream := range names {
		if err := s.has(ctx, stream, want); err != nil {
			return err
		}
	}
	return nil
}
