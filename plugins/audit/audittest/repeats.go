package audittest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// writes writes batches of a stream one after the other, and compares what was kept.
func (s Subject) writes(ctx context.Context, want []audit.Record, batches ...[]audit.Record) error {
	if _, err := s.records(); err != nil {
		return err
	}
	stream := newStream()
	for _, b := range batches {
		if err := write(ctx, s.Sink, stream, b); err != nil {
			return err
		}
	}
	return s.has(ctx, stream, want)
}

func repeatedBatch(ctx context.Context, s Subject) error {
	one := batch(1, 20)
	return s.writes(ctx, one, one, one, one[4:9], one)
}

func overlappingBatch(ctx context.Context, s Subject) error {
	all := batch(1, 20)
	return s.writes(ctx, all, all[:5], all[:12], all[3:12], all[11:])
}

func repeatAfterOthers(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	stream, one := newStream(), batch(1, 3)
	if err := write(ctx, s.Sink, stream, one); err != nil {
		return err
	}
	for range 300 {
		if err := write(ctx, s.Sink, newStream(), batch(1, 1)); err != nil {
			return err
		}
	}
	if err := write(ctx, s.Sink, stream, one); err != nil {
		return err
	}
	return s.has(ctx, stream, one)
}

func mustBeInvalid(err error, what string) error {
	if !errors.Is(err, plugins.ErrInvalid) {
		return kit.Failf("Write of %s must return plugins.ErrInvalid (INVALID_ARGUMENT); it returned %v", what, err)
	}
	return nil
}

func refusesNoStream(ctx context.Context, s Subject) error {
	return mustBeInvalid(s.Sink.Write(ctx, "", batch(1, 2)), "a batch without a stream")
}

func refusesDisorder(ctx context.Context, s Subject) error {
	for what, sequences := range map[string][]uint64{
		"a record with the sequence 0": {0, 1}, "a batch whose sequences descend": {1, 3, 2}, "a batch with one sequence twice": {1, 2, 2},
	} {
		stream := newStream()
		var all []audit.Record
		for _, n := range sequences {
			all = append(all, record(n))
		}
		if err := mustBeInvalid(s.Sink.Write(ctx, stream, all), what); err != nil {
			return err
		}
		if _, err := s.records(); err != nil {
			continue // what was kept cannot be seen
		}
		if kept, err := s.kept(ctx, stream); err != nil || len(kept) > 0 {
			return errors.Join(err, kit.Failf("%s was refused, and %d records of it were kept", what, len(kept)))
		}
	}
	return nil
}

// keepsRefused has a batch refused for one record in its middle, and writes the records again in a good batch.
func keepsRefused(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	stream, all := newStream(), batch(1, 7)
	if err := write(ctx, s.Sink, stream, all[:2]); err != nil {
		return err
	}
	wrong := []audit.Record{all[2], all[3], all[2], all[5]}
	if err := mustBeInvalid(s.Sink.Write(ctx, stream, wrong), "a batch with one sequence twice"); err != nil {
		return err
	}
	for _, b := range [][]audit.Record{all[2:6], all[6:]} {
		if err := write(ctx, s.Sink, stream, b); err != nil {
			return kit.Failf("after a batch of the stream was refused: %w", err)
		}
	}
	if err := s.has(ctx, stream, all); err != nil {
		return kit.Failf("the records of a batch that was refused came again in a good one: %w", err)
	}
	return nil
}

func emptyBatch(ctx context.Context, s Subject) error {
	if err := s.Sink.Write(ctx, newStream(), nil); err != nil {
		return kit.Failf("Write of an empty batch must return no error; it returned %w", err)
	}
	return nil
}

func returnsInTime(ctx context.Context, s Subject) error {
	passed, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	<-passed.Done()
	began := time.Now()
	err := s.Sink.Write(passed, newStream(), batch(1, 1))
	if took := time.Since(began); took > 2*time.Second {
		return kit.Failf("Write with a deadline that has passed must return at once; it took %s", took.Round(time.Millisecond))
	}
	if err == nil {
		return kit.Failf("Write with a deadline that has passed must return an error")
	}
	return nil
}

func streamsAreApart(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	names, want := []string{newStream(), newStream(), newStream()}, batch(1, 12)
	for i := 0; i < len(want); i += 4 {
		for _, stream := range names {
			if err := write(ctx, s.Sink, stream, want[i:i+4]); err != nil {
				return err
			}
		}
	}
	for _, stream := range names {
		if err := s.has(ctx, stream, want); err != nil {
			return err
		}
	}
	return nil
}

func similarStreams(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	base := newStream()
	long := base + strings.Repeat("x", 127-len(base))
	names := []string{base, base + " ", base + "%", base + "_", base + "A", base + "a", base + "/..", base + "\x00", base + "Ä", base + "A\u0308", long + "1", long + "2"}
	for i, stream := range names {
		if err := write(ctx, s.Sink, stream, batch(uint64(i+1), uint64(i+2))); err != nil {
			return err
		}
	}
	for i, stream := range names {
		kept, err := s.kept(ctx, stream)
		if err != nil {
			return err
		}
		if len(kept) != 2 || kept[0].Sequence != uint64(i+1) || kept[1].Sequence != uint64(i+2) {
			return kit.Failf("the stream %q was written with the sequences %d and %d; %d records were kept of it", stream, i+1, i+2, len(kept))
		}
	}
	return nil
}

// mentionsAnother writes records of one stream whose every field is the name of another one.
func mentionsAnother(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	named, other := newStream(), newStream()
	mention := full(1, func(string) string { return named })
	mention.Arguments = json.RawMessage(`{"stream":"` + named + `"}`)
	if err := write(ctx, s.Sink, other, []audit.Record{mention}); err != nil {
		return err
	}
	if err := s.has(ctx, named, nil); err != nil {
		return kit.Failf("a record of the stream %q has the name %q in its fields, and is among the records of that stream: %w", other, named, err)
	}
	own := batch(2, 3)
	if err := write(ctx, s.Sink, named, own); err != nil {
		return err
	}
	if err := s.has(ctx, named, own); err != nil {
		return err
	}
	return s.has(ctx, other, []audit.Record{mention})
}

func concurrentStreams(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	const writers, rounds, size = 16, 8, 5
	names, want := make([]string, writers), make([][]audit.Record, writers)
	failures := make([]error, writers)
	var writing sync.WaitGroup
	for i := range writers {
		names[i], want[i] = newStream(), batch(1, rounds*size)
		writing.Go(func() {
			for n := 0; n < rounds*size && failures[i] == nil; n += size {
				failures[i] = write(ctx, s.Sink, names[i], want[i][n:n+size])
			}
		})
	}
	writing.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for i := range writers {
		if err := s.has(ctx, names[i], want[i]); err != nil {
			return err
		}
	}
	return nil
}

func unknownStream(ctx context.Context, s Subject) error {
	if !s.reads() {
		return kit.Skip(`the sink has not the capability "read"`)
	}
	if kept, err := s.kept(ctx, newStream()); err != nil || len(kept) > 0 {
		return errors.Join(err, kit.Failf("Read of a stream that was never written must return no records and no error; it returned %d records", len(kept)))
	}
	return nil
}

func readsPages(ctx context.Context, s Subject) error {
	if !s.reads() {
		return kit.Skip(`the sink has not the capability "read"`)
	}
	reader, stream, want := s.Sink.(audit.Reader), newStream(), batch(11, 30)
	if err := write(ctx, s.Sink, stream, want); err != nil {
		return err
	}
	after := uint64(0)
	for i := 0; i < len(want); {
		page, err := reader.Read(ctx, stream, after, 7)
		if err != nil || len(page) == 0 || len(page) > 7 {
			return errors.Join(err, kit.Failf("Read of at most 7 records after %d returned %d", after, len(page)))
		}
		if err := same(page, want[i:min(i+len(page), len(want))]); err != nil {
			return err
		}
		i += len(page)
		after = page[len(page)-1].Sequence
	}
	if page, err := reader.Read(ctx, stream, 30, 7); err != nil || len(page) > 0 {
		return errors.Join(err, kit.Failf("Read after the last record must return no records and no error; it returned %d records", len(page)))
	}
	return nil
}
