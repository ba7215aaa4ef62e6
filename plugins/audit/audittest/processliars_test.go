package audittest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
)

type writeFunc = func(ctx context.Context, stream string, records []audit.Record) error

// writing is a sink whose Write make makes for each process.
func writing(make func(*process) writeFunc) func(*process) audit.Sink {
	return func(p *process) audit.Sink { return hooks{process: p, write: make(p)} }
}

func repeatLies() []lie {
	const again, part, disorder = "a batch that is written again is kept once", "of a batch that was kept in part the rest is kept", "a batch whose sequences are zero or do not ascend is invalid, and nothing of it is kept"
	const similar, apart, pages = "streams differ by every character of up to 128 bytes", "streams with the same sequences are apart", "a read begins after the given sequence and has at most the given number"
	const afterRefusal = "records of a batch that was refused are kept when they come again in a good one"
	const concurrent = "concurrent writes of several streams lose and mix nothing"
	return []lie{
		{"keeps repeats again", again, batches(func(all []audit.Record) []audit.Record { return all })},
		{"answers a repeat with an error", again, writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if kept := p.disk.of(stream); len(kept) > 0 && len(all) > 0 && all[0].Sequence <= kept[len(kept)-1].Sequence {
					return errors.New("duplicate key")
				}
				return p.Write(ctx, stream, all)
			}
		})},
		{"passes over a whole batch for its first record", part, writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if kept := p.disk.of(stream); len(kept) > 0 && len(all) > 0 && all[0].Sequence <= kept[len(kept)-1].Sequence {
					return nil
				}
				return p.Write(ctx, stream, all)
			}
		})},
		{"remembers 100 streams", "a repeat is passed over after 300 other streams, too", remembers100},
		{"takes batches without a stream", "a batch without a stream is invalid", writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				p.disk.add(stream, all)
				return p.disk.reach(ctx)
			}
		})},
		{"takes sequences in any order", disorder, writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				p.disk.add(stream, all)
				return p.disk.reach(ctx)
			}
		})},
		{"keeps what is good of a batch that it refuses", disorder, writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				err := p.begin(ctx, stream, all)
				if errors.Is(err, plugins.ErrInvalid) && len(all) > 0 && all[0].Sequence > 0 {
					p.disk.add(stream, all[:1])
				}
				if err == nil {
					p.disk.add(stream, all)
				}
				return err
			}
		})},
		{"passes over records that it refused before", afterRefusal, writing(func(p *process) writeFunc {
			refused := map[string]bool{}
			return func(ctx context.Context, stream string, all []audit.Record) error {
				err := p.begin(ctx, stream, all)
				good := slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool { return refused[r.RequestID] })
				if errors.Is(err, plugins.ErrInvalid) {
					for _, r := range all {
						refused[r.RequestID] = true
					}
				}
				if err == nil {
					p.disk.add(stream, good)
				}
				return err
			}
		})},
		{"refuses a stream once a batch of it was refused", afterRefusal, writing(func(p *process) writeFunc {
			broken := map[string]bool{}
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if broken[stream] {
					return plugins.ErrInvalid
				}
				err := p.Write(ctx, stream, all)
				broken[stream] = errors.Is(err, plugins.ErrInvalid)
				return err
			}
		})},
		{"takes the highest sequence of a refused batch for kept", afterRefusal, writing(func(p *process) writeFunc {
			last := map[string]uint64{}
			return func(ctx context.Context, stream string, all []audit.Record) error {
				err := p.begin(ctx, stream, all)
				before := last[stream]
				for _, r := range all {
					last[stream] = max(last[stream], r.Sequence)
				}
				if err == nil {
					p.disk.add(stream, slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool { return r.Sequence <= before }))
				}
				return err
			}
		})},
		{"refuses empty batches", "an empty batch is not an error", writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if len(all) == 0 {
					return plugins.ErrInvalid
				}
				return p.Write(ctx, stream, all)
			}
		})},
		{"sleeps through deadlines", "a write whose deadline has passed returns", writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				time.Sleep(5 * time.Second) //nolint:forbidigo // the lie, by the clock of the bubble
				return p.Write(ctx, stream, all)
			}
		})},
		{"looks for the name of a stream in the text of records", "records that mention another stream stay in their own", func(p *process) audit.Sink {
			return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				return page(p.disk.mentioning(stream), after, limit), p.disk.reach(ctx)
			}}
		}},
		{"tells streams apart by nothing", apart, writing(func(p *process) writeFunc {
			var mu sync.Mutex
			last := uint64(0)
			return func(ctx context.Context, stream string, all []audit.Record) error {
				mu.Lock()
				defer mu.Unlock()
				fresh := slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool { return r.Sequence <= last })
				for _, r := range fresh {
					last = max(last, r.Sequence)
				}
				return p.Write(ctx, stream, fresh)
			}
		})},
		{"lower-cases streams", similar, renames(strings.ToLower)},
		{"cuts streams at 100 bytes", similar, renames(func(stream string) string { return stream[:min(len(stream), 100)] })},
		{"takes streams for file names", similar, renames(func(stream string) string { return strings.TrimSuffix(stream, "/..") })},
		{"trims streams", similar, renames(strings.TrimSpace)},
		{"gathers writes and keeps them under the stream of the last", concurrent, mixes},
		{"writes back what it read", concurrent, writesBack(func() *sync.Mutex { return nil })},
		{"does not find streams that are not known", "a stream that is not known has no records", func(p *process) audit.Sink {
			return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				if len(p.disk.of(stream)) == 0 {
					return nil, plugins.ErrNotFound
				}
				return p.Read(ctx, stream, after, limit)
			}}
		}},
		{"shows the records of all streams", "a stream that is not known has no records", func(p *process) audit.Sink {
			p.disk.force("another", []audit.Record{{Sequence: 1}})
			return hooks{process: p, read: func(ctx context.Context, _ string, after uint64, limit int) ([]audit.Record, error) {
				return p.Read(ctx, "another", after, limit)
			}}
		}},
		{"ignores the limit", pages, func(p *process) audit.Sink {
			return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, _ int) ([]audit.Record, error) {
				return p.Read(ctx, stream, after, 1000)
			}}
		}},
		{"begins with the given sequence", pages, func(p *process) audit.Sink {
			return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				return p.Read(ctx, stream, max(after, 1)-1, limit)
			}}
		}},
		{"counts the given sequence as a number of records", pages, func(p *process) audit.Sink {
			return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				kept := p.disk.of(stream)
				from := min(int(after), len(kept))
				return kept[from:min(len(kept), from+limit)], ctx.Err()
			}}
		}},
	}
}

func processLies() []lie {
	const kill, away, later = "records that were acknowledged survive kill -9", "a write without its backend is unavailable", "what could not be written is kept once the backend is back"
	return []lie{
		{"acknowledges before it keeps", kill, behind(time.Second)},
		{"acknowledges a millisecond before it keeps", kill, behind(time.Millisecond)},
		{"keeps every fourth batch at once, and those before with it", kill, gathers(4, true)},
		{"loses what it has gathered when it is ended", "records that were acknowledged survive the end of the process", gathers(3, false)},
		{"remembers in memory what it has kept", "a batch that is written again after kill -9 is kept once", writing(func(p *process) writeFunc {
			var mu sync.Mutex
			last := map[string]uint64{}
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if err := p.begin(ctx, stream, all); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				for _, r := range all {
					if r.Sequence > last[stream] {
						p.disk.force(stream, []audit.Record{r})
						last[stream] = r.Sequence
					}
				}
				return nil
			}
		})},
		{"shows new records after a second", "another process sees records as soon as they are acknowledged", behind(time.Second)},
		{"shows what it read at its start", "another process sees records as soon as they are acknowledged", func(p *process) audit.Sink {
			p.disk.mu.Lock()
			known := maps.Clone(p.disk.kept)
			p.disk.mu.Unlock()
			return hooks{process: p, read: func(_ context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				return page(known[stream], after, limit), nil
			}}
		}},
		{"writes back what it read, one process at a time", "two processes that write at the same time lose nothing", writesBack(func() *sync.Mutex { return &sync.Mutex{} })},
		{"acknowledges while its backend is away", away, whileAway(func(*process, string, []audit.Record) error { return nil })},
		{"keeps for later while its backend is away", away, whileAway(func(p *process, stream string, all []audit.Record) error {
			p.disk.add(stream, all)
			return nil
		})},
		{"answers an internal error while its backend is away", away, whileAway(func(*process, string, []audit.Record) error { return errInternal })},
		{"answers that a record is invalid while its backend is away", away, whileAway(func(*process, string, []audit.Record) error { return plugins.ErrInvalid })},
		{"waits for its backend beyond the deadline", "a write to a backend that does not answer returns by its deadline", writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if p.disk.reach(ctx) != nil {
					time.Sleep(10 * time.Second) //nolint:forbidigo // the lie, by the clock of the bubble
				}
				return p.Write(ctx, stream, all)
			}
		})},
		{"blocks for ever", "a write to a backend that does not answer returns by its deadline", writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				if p.disk.reach(ctx) != nil {
					time.Sleep(time.Hour) //nolint:forbidigo // the lie, by the clock of the bubble
				}
				return p.Write(ctx, stream, all)
			}
		})},
		{"remembers what it could not keep as kept", later, writing(func(p *process) writeFunc {
			var mu sync.Mutex
			last := map[string]uint64{}
			return func(ctx context.Context, stream string, all []audit.Record) error {
				mu.Lock()
				defer mu.Unlock()
				fresh := slices.DeleteFunc(slices.Clone(all), func(r audit.Record) bool { return r.Sequence <= last[stream] })
				if len(fresh) > 0 {
					last[stream] = fresh[len(fresh)-1].Sequence
				}
				return p.Write(ctx, stream, fresh)
			}
		})},
		{"never finds its backend again", later, writing(func(p *process) writeFunc {
			var mu sync.Mutex
			broken := false
			return func(ctx context.Context, stream string, all []audit.Record) error {
				mu.Lock()
				defer mu.Unlock()
				if broken {
					return unavailable("the connection is broken")
				}
				err := p.Write(ctx, stream, all)
				broken = err != nil
				return err
			}
		})},
		{"keeps a part of what it could not keep, and that twice", later, writing(func(p *process) writeFunc {
			return func(ctx context.Context, stream string, all []audit.Record) error {
				err := p.Write(ctx, stream, all)
				if err != nil && len(all) > 0 {
					p.disk.force(stream, all[:1])
					p.disk.force(stream, all[:1])
				}
				return err
			}
		})},
	}
}

// behind keeps what it acknowledged after a while, unless it is killed before. Its own reads show all.
func behind(delay time.Duration) func(*process) audit.Sink {
	return func(p *process) audit.Sink {
		own := &disk{kept: map[string][]audit.Record{}}
		return hooks{
			process: p,
			write: func(ctx context.Context, stream string, all []audit.Record) error {
				if err := p.begin(ctx, stream, all); err != nil {
					return err
				}
				own.add(stream, all)
				go func() {
					pause := time.NewTimer(delay)
					defer pause.Stop()
					select {
					case <-pause.C:
						p.disk.add(stream, all)
					case <-p.dead:
					}
				}()
				return nil
			},
			read: func(_ context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				seen := p.disk.of(stream)
				if mine := own.of(stream); len(mine) > len(seen) {
					seen = mine
				}
				return page(seen, after, limit), nil
			},
		}
	}
}

// gathers keeps every n batches together; what is left at the end is kept if flush is set.
func gathers(n int, flush bool) func(*process) audit.Sink {
	type held struct {
		stream  string
		records []audit.Record
	}
	return func(p *process) audit.Sink {
		var mu sync.Mutex
		var waiting []held
		keep := func() {
			for _, h := range waiting {
				p.disk.add(h.stream, h.records)
			}
			waiting = nil
		}
		return hooks{
			process: p,
			write: func(ctx context.Context, stream string, all []audit.Record) error {
				if err := p.begin(ctx, stream, all); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if waiting = append(waiting, held{stream, all}); len(waiting) == n {
					keep()
				}
				return nil
			},
			close: func() {
				mu.Lock()
				defer mu.Unlock()
				select {
				case <-p.dead:
				default:
					if flush {
						keep()
					}
				}
			},
		}
	}
}

// remembers100 knows the last sequence of 100 streams.
func remembers100(p *process) audit.Sink {
	var mu sync.Mutex
	last := map[string]uint64{}
	var order []string
	return hooks{process: p, write: func(ctx context.Context, stream string, all []audit.Record) error {
		if err := p.begin(ctx, stream, all); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if _, known := last[stream]; !known {
			if order = append(order, stream); len(order) > 100 {
				delete(last, order[0])
				order = order[1:]
			}
		}
		for _, r := range all {
			if r.Sequence > last[stream] {
				p.disk.force(stream, []audit.Record{r})
				last[stream] = r.Sequence
			}
		}
		return nil
	}}
}

// renames keeps streams under other names.
func renames(rename func(string) string) func(*process) audit.Sink {
	return func(p *process) audit.Sink {
		return hooks{
			process: p,
			write: func(ctx context.Context, stream string, all []audit.Record) error {
				if err := p.begin(ctx, stream, all); err != nil {
					return err
				}
				return p.Write(ctx, rename(stream), all)
			},
			read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
				return p.Read(ctx, rename(stream), after, limit)
			},
		}
	}
}

// mixes gathers what comes within a millisecond.
func mixes(p *process) audit.Sink {
	var mu sync.Mutex
	var waiting []audit.Record
	return hooks{process: p, write: func(ctx context.Context, stream string, all []audit.Record) error {
		if err := p.begin(ctx, stream, all); err != nil {
			return err
		}
		mu.Lock()
		waiting = append(waiting, all...)
		mu.Unlock()
		time.Sleep(time.Millisecond) //nolint:forbidigo // the lie, by the clock of the bubble
		mu.Lock()
		defer mu.Unlock()
		p.disk.force(stream, waiting)
		waiting = nil
		return nil
	}}
}

// writesBack reads everything, and a millisecond later writes everything with its own records.
func writesBack(guard func() *sync.Mutex) func(*process) audit.Sink {
	return func(p *process) audit.Sink {
		own := guard()
		return hooks{process: p, write: func(ctx context.Context, stream string, all []audit.Record) error {
			if err := p.begin(ctx, stream, all); err != nil {
				return err
			}
			if own != nil {
				own.Lock()
				defer own.Unlock()
			}
			p.disk.mu.Lock()
			kept := maps.Clone(p.disk.kept)
			p.disk.mu.Unlock()
			time.Sleep(time.Millisecond) //nolint:forbidigo // the lie, by the clock of the bubble
			p.disk.mu.Lock()
			p.disk.kept = kept
			p.disk.mu.Unlock()
			p.disk.add(stream, all)
			return nil
		}}
	}
}

// whileAway answers what it likes while the backend is away.
func whileAway(answer func(p *process, stream string, all []audit.Record) error) func(*process) audit.Sink {
	return writing(func(p *process) writeFunc {
		return func(ctx context.Context, stream string, all []audit.Record) error {
			err := p.Write(ctx, stream, all)
			if errors.Is(err, plugins.ErrUnavailable) {
				return answer(p, stream, all)
			}
			return err
		}
	})
}
