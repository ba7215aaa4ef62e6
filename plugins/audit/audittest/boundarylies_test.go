package audittest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

// boundaryLies are wrong at the edge of a batch, a page, a stream or a process.
func boundaryLies() []lie {
	return slices.Concat(repeatedLies(), pageLies(), valueLies())
}

// keepsAs is a sink that makes something else of a good batch, given what was kept of the stream.
func keepsAs(keep func(p *process, stream string, kept, all []audit.Record)) func(*process) audit.Sink {
	return writing(func(p *process) writeFunc {
		return func(ctx context.Context, stream string, all []audit.Record) error {
			if err := p.begin(ctx, stream, all); err != nil {
				return err
			}
			keep(p, stream, p.disk.of(stream), all)
			return nil
		}
	})
}

// refuses is a sink that refuses some good batches.
func refuses(wrong func(all []audit.Record) bool) func(*process) audit.Sink {
	return writing(func(p *process) writeFunc {
		return func(ctx context.Context, stream string, all []audit.Record) error {
			if wrong(all) {
				return plugins.ErrInvalid
			}
			return p.Write(ctx, stream, all)
		}
	})
}

// without is all without the sequences that some has.
func without(all, some []audit.Record) []audit.Record {
	return slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool {
		return slices.ContainsFunc(some, func(k audit.Record) bool { return k.Sequence == r.Sequence })
	})
}

func repeatedLies() []lie {
	return []lie{
		{"puts a repeat in the place of what it kept", "a repeat with other contents changes nothing of what was kept", keepsAs(func(p *process, stream string, kept, all []audit.Record) {
			p.disk.replace(stream, append(without(kept, all), all...))
		})},
		{"keeps whatever sequence it has not kept", "a sequence that was left out is passed over once a higher one was kept", keepsAs(func(p *process, stream string, kept, all []audit.Record) {
			p.disk.replace(stream, append(kept, without(all, kept)...))
		})},
		{"remembers the last 1,000 sequences", "an old batch that comes again after 2,000 records is passed over", keepsAs(func(p *process, stream string, kept, all []audit.Record) {
			p.disk.replace(stream, append(kept, without(all, kept[max(0, len(kept)-1000):])...))
		})},
		{"takes an empty batch for the start of a stream", "an empty batch forgets nothing of its stream", writing(func(p *process) writeFunc {
			begun := map[string]bool{}
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if begun[stream] && len(p.disk.of(stream)) > 0 {
					p.disk.force(stream, all)
				}
				begun[stream] = len(all) == 0
				return p.Write(ctx, stream, all)
			}
		})},
		{"passes over what it kept and then looks at the order", "a batch that does not ascend is invalid whatever was kept before", writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if kept := p.disk.of(stream); len(kept) > 0 {
					last := kept[len(kept)-1].Sequence
					all = slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool { return r.Sequence > 0 && r.Sequence <= last })
				}
				return p.Write(ctx, stream, all)
			}
		})},
		{"keeps one record of a request", "records that share their request are all kept", keepsAs(func(p *process, stream string, kept, all []audit.Record) {
			p.disk.add(stream, slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool {
				return slices.ContainsFunc(kept, func(k audit.Record) bool { return k.RequestID == r.RequestID })
			}))
		})},
		{"reads the last sequence of a stream once", "a repeat is passed over in a process that did not write the records", writing(readsLastOnce)},
	}
}

// replace has the stream hold records, in the order of their sequences.
func (d *disk) replace(stream string, records []audit.Record) {
	slices.SortFunc(records, func(a, b audit.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[stream] = records
}

// readsLastOnce keeps the last sequence of each stream in memory once it has read it.
func readsLastOnce(p *process) writeFunc {
	var mu sync.Mutex
	last := map[string]uint64{}
	return func(ctx context.Context, stream string, all []audit.Record) error {
		if err := p.begin(ctx, stream, all); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if _, known := last[stream]; !known {
			for _, r := range p.disk.of(stream) {
				last[stream] = max(last[stream], r.Sequence)
			}
		}
		for _, r := range all {
			if r.Sequence > last[stream] {
				p.disk.force(stream, []audit.Record{r})
				last[stream] = r.Sequence
			}
		}
		return nil
	}
}

// pages is a sink that reads in a way of its own.
func pages(read func(kept []audit.Record, after uint64, limit int) ([]audit.Record, error)) func(*process) audit.Sink {
	return func(p *process) audit.Sink {
		return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
			all, err := read(p.disk.of(stream), after, limit)
			return all, cmp.Or(err, p.disk.reach(ctx))
		}}
	}
}

func size(all []audit.Record) (n int) {
	for _, r := range all {
		n += len(r.Arguments)
	}
	return n
}

func pageLies() []lie {
	const gaps, after = "sequences with gaps are kept in the order of their numbers, whatever their times", "a read after any number is answered"
	return []lie{
		{"shows records in the order of their times", gaps, reads(func(all []audit.Record) []audit.Record {
			slices.SortStableFunc(all, func(a, b audit.Record) int { return a.Time.Compare(b.Time) })
			return all
		})},
		{"shows a stream up to its first gap", gaps, reads(func(all []audit.Record) []audit.Record {
			for i := 1; i < len(all); i++ {
				if all[i].Sequence != all[i-1].Sequence+1 {
					return all[:i]
				}
			}
			return all
		})},
		{"refuses batches of more than 5 MiB", "a batch of 8 MiB is kept whole", refuses(func(all []audit.Record) bool { return size(all) > 5<<20 })},
		{"answers with more than a message can hold", "a stream of more than 16 MiB can be read", pages(func(kept []audit.Record, after uint64, limit int) ([]audit.Record, error) {
			all := page(kept, after, limit)
			if size(all) > 16<<20 {
				return nil, errInternal
			}
			return all, nil
		})},
		{"begins again after the highest number", after, pages(func(kept []audit.Record, after uint64, limit int) ([]audit.Record, error) {
			if after+1 == 0 {
				after = 0
			}
			return page(kept, after, limit), nil
		})},
		{"reads the number to begin after as a signed one", after, pages(func(kept []audit.Record, after uint64, limit int) ([]audit.Record, error) {
			return page(kept, uint64(max(0, int64(after))), limit), nil //nolint:gosec // the lie
		})},
	}
}

func valueLies() []lie {
	return slices.Concat(timeLies(), argumentLies(), []lie{
		{"writes addresses in their short form", "any text comes back byte for byte", changes(func(r *audit.Record) {
			if a, err := netip.ParseAddr(r.Address); err == nil {
				r.Address = a.Unmap().String()
			}
		})},
		{"drops the port of an address", "any text comes back byte for byte", changes(func(r *audit.Record) {
			if a, err := netip.ParseAddrPort(r.Address); err == nil {
				r.Address = a.Addr().String()
			}
		})},
		{"cuts traces at 100 KB", "long values come back whole", changes(func(r *audit.Record) { r.TraceID = r.TraceID[:min(len(r.TraceID), 100_000)] })},
	})
}

func timeLies() []lie {
	const times = "times come back to the millisecond"
	return []lie{
		{"has 1970 for no time", times, changes(func(r *audit.Record) {
			if r.Time.IsZero() {
				r.Time = time.Unix(0, 0)
			}
		})},
		{"cuts times before 1970 to seconds", times, changes(func(r *audit.Record) {
			if r.Time.Unix() < 0 {
				r.Time = r.Time.Truncate(time.Second)
			}
		})},
		{"counts seconds in unsigned 32 bits", times, changes(func(r *audit.Record) {
			if r.Time.Unix() > 0 {
				r.Time = time.Unix(int64(uint32(r.Time.Unix())), int64(r.Time.Nanosecond())) //nolint:gosec // the lie
			}
		})},
	}
}

func argumentLies() []lie {
	const arguments = "arguments come back as the same JSON value"
	members := func(change func(map[string]any)) func(*process) audit.Sink {
		return changes(func(r *audit.Record) {
			dec := json.NewDecoder(bytes.NewReader(r.Arguments))
			dec.UseNumber()
			var v map[string]any
			if len(r.Arguments) > 0 && dec.Decode(&v) == nil && v != nil {
				change(v)
				r.Arguments, _ = json.Marshal(v)
			}
		})
	}
	return []lie{
		{"leaves out members that are null", arguments, members(func(v map[string]any) {
			for name := range v {
				if v[name] == nil {
					delete(v, name)
				}
			}
		})},
		{"leaves out a member without a name", arguments, members(func(v map[string]any) { delete(v, "") })},
		{"lower-cases the names of members", arguments, members(func(v map[string]any) {
			for name, value := range v {
				delete(v, name)
				v[strings.ToLower(name)] = value
			}
		})},
		{"takes arguments that say nothing for none", arguments, changes(func(r *audit.Record) {
			if s := string(r.Arguments); s == `""` || s == "{}" || s == "false" {
				r.Arguments = nil
			}
		})},
		{"refuses arguments of more than 100 levels", arguments, refuses(func(all []audit.Record) bool {
			return slices.ContainsFunc(all, func(r audit.Record) bool { return bytes.Count(r.Arguments, []byte("[")) > 100 })
		})},
		{"refuses numbers that no float holds", arguments, refuses(func(all []audit.Record) bool {
			return slices.ContainsFunc(all, func(r audit.Record) bool { return bytes.Contains(r.Arguments, []byte("e400")) })
		})},
	}
}
