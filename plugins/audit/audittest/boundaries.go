package audittest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// boundaries are promises about what lies at the edge of a batch, a page, a stream or a process.
func boundaries() []Check {
	const once = "one whose sequence is not higher than that of the last kept record of its stream is passed over"
	return []Check{
		check("a repeat with other contents changes nothing of what was kept", once, repeatChangesNothing),
		check("a sequence that was left out is passed over once a higher one was kept", once, lateSequence),
		check("an old batch that comes again after 2,000 records is passed over", once, oldRepeat),
		check("an empty batch forgets nothing of its stream", "An empty batch is not an error", emptyForgetsNothing),
		check("a batch that does not ascend is invalid whatever was kept before", "do not ascend within the batch", disorderAfterRecords),
		check("sequences with gaps are kept in the order of their numbers, whatever their times", "A stream may begin with any sequence and leave numbers out", gapsAndTimes),
		check("records that share their request are all kept", "Records that differ in nothing but their sequence, or in nothing but their stream, are different records", oneRequest),
		check("a read after any number is answered", "whose sequence is higher than a given one", readsAfterAnything),
		check("a repeat is passed over in a process that did not write the records", once, repeatElsewhere),
	}
}

// megabytes are promises about much at once.
func megabytes() []Check {
	return []Check{
		check("long values come back whole", "exactly as they were written: any text may be in any field, however long", longValuesComeBack),
		check("old records stay when many follow", "no newer one ever takes its place", oldRecordsStay),
		check("a record with arguments of 4 MiB is kept", "one JSON value of up to 4 MiB", largeArguments),
		check("a batch of 8 MiB is kept whole", "Up to 1,000 records, together up to 8 MiB", largeBatch),
		check("a stream of more than 16 MiB can be read", "The answer may have fewer, but has at least one if there is one", largeStream),
	}
}

// repeatChangesNothing writes the sequences of a batch again, with other values.
func repeatChangesNothing(ctx context.Context, s Subject) error {
	first, second := batch(1, 6), batch(1, 6)
	for i := range second {
		second[i].Outcome, second[i].Target = "forbidden", "another"
	}
	return s.writes(ctx, first, first, second, second[2:4])
}

func lateSequence(ctx context.Context, s Subject) error {
	kept := []audit.Record{record(10), record(11), record(20), record(21)}
	return s.writes(ctx, kept, kept[:2], kept[2:], []audit.Record{record(5), record(15)}, []audit.Record{record(19)})
}

func oldRepeat(ctx context.Context, s Subject) error {
	const size = 500
	all := batch(1, 4*size)
	return s.writes(ctx, all, all[:size], all[size:2*size], all[2*size:3*size], all[3*size:], all[:3])
}

func emptyForgetsNothing(ctx context.Context, s Subject) error {
	all := batch(1, 6)
	return s.writes(ctx, all, nil, all[:4], nil, all[:4], nil, all[2:], nil)
}

// disorderAfterRecords writes batches that would ascend without the records that were kept before.
func disorderAfterRecords(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	stream, all := newStream(), batch(1, 8)
	if err := write(ctx, s.Sink, stream, all[:4]); err != nil {
		return err
	}
	for what, wrong := range map[string][]audit.Record{
		"a new record and then one that was kept":               {all[4], all[2]},
		"a record that was kept twice, and a new one":           {all[1], all[1], all[5]},
		"records that were kept, in descending order":           {all[3], all[2]},
		"records that were kept, descending, and then new ones": {all[2], all[1], all[4], all[5]},
	} {
		if err := mustBeInvalid(s.Sink.Write(ctx, stream, wrong), "a batch of "+what); err != nil {
			return err
		}
	}
	return s.has(ctx, stream, all[:4])
}

func gapsAndTimes(ctx context.Context, s Subject) error {
	var all []audit.Record
	for i, n := range []uint64{2, 3, 9, 10, 11, 99, 100, 101, 999, 9_999_999_999, 10_000_000_000} {
		r := record(n)
		r.Time = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).Add(-time.Duration(i%3) * time.Minute) // a clock that is set back
		all = append(all, r)
	}
	return s.writes(ctx, all, all[:1], all[1:5], all[5:])
}

func oneRequest(ctx context.Context, s Subject) error {
	all := batch(1, 6)
	for i := range all {
		all[i].RequestID, all[i].TraceID = "req_one", "trace_one"
	}
	return s.writes(ctx, all, all[:2], all[2:4], all[4:])
}

// large is records of about a megabyte each.
func large(from, to uint64) []audit.Record {
	all := batch(from, to)
	for i := range all {
		all[i].Arguments = json.RawMessage(`{"text":"` + strings.Repeat("0123456789abcdef", (1<<20-1<<10)/16) + `"}`)
	}
	return all
}

func largeBatch(ctx context.Context, s Subject) error {
	return s.keeps(ctx, slices.Concat(large(1, 7), batch(8, 12))...)
}

func largeStream(ctx context.Context, s Subject) error {
	all := large(1, 18)
	return s.writes(ctx, all, all[:6], all[6:12], all[12:])
}

// readsAfterAnything reads after numbers that an addition or a smaller integer changes.
func readsAfterAnything(ctx context.Context, s Subject) error {
	if !s.reads() {
		return kit.Skip(`the sink has not the capability "read"`)
	}
	reader, stream, all := s.Sink.(audit.Reader), newStream(), []audit.Record{record(3), record(7), record(1<<32 + 5)}
	if err := write(ctx, s.Sink, stream, all); err != nil {
		return err
	}
	for after, want := range map[uint64][]audit.Record{
		0: all, 2: all, 3: all[1:], 5: all[1:], 1 << 32: all[2:], 1<<32 + 4: all[2:], 1<<32 + 5: nil, 1 << 62: nil, math.MaxInt64: nil, 1<<63 + 1: nil, math.MaxUint64: nil,
	} {
		page, err := reader.Read(ctx, stream, after, 10)
		if err != nil {
			return kit.Failf("Read of what comes after %d: %w", after, err)
		}
		if len(page) > len(want) || len(page) == 0 && len(want) > 0 {
			return kit.Failf("Read of what comes after %d in a stream of the sequences 3, 7 and %d returned %d records; there are %d", after, uint64(1<<32+5), len(page), len(want))
		}
		if err := same(page, want[:len(page)]); err != nil {
			return errors.Join(kit.Failf("Read of what comes after %d", after), err)
		}
	}
	return nil
}

// repeatElsewhere has two processes write one stream in turn, as when a plugin is exchanged and exchanged back.
func repeatElsewhere(ctx context.Context, s Subject) error {
	if !s.reads() {
		return kit.Skip(`the sink has not the capability "read"`)
	}
	other, _, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer other.Close()
	stream, all := newStream(), batch(1, 12)
	for i, b := range [][]audit.Record{all[:3], all[:6], all[3:9], all[6:], all[8:]} {
		if err := write(ctx, []audit.Sink{s.Sink, other.Sink}[i%2], stream, b); err != nil {
			return err
		}
	}
	if err := s.has(ctx, stream, all); err != nil {
		return kit.Failf("of a stream that two processes wrote in turn, each beginning with what the other one had kept: %w", err)
	}
	return nil
}
