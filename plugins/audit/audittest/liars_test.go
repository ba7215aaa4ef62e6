package audittest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// The names of the properties.
const (
	exact   = "every record comes back as it was written"
	model   = "after every history of calls and restarts, a sink has what the model has"
	many    = "servers that write at the same time lose, duplicate and mix up nothing"
	ends    = "acknowledged records are there however a process ends, and others are not there in part"
	amounts = "no repeat is too old, no record too large and no stream too long"
	fails   = "records that cannot be kept now are not acknowledged, and are kept when they are sent again"
)

// alters changes each record before it is kept.
func alters(change func(r *audit.Record)) func(*sink) {
	return func(s *sink) { s.alter = func(_ string, r *audit.Record) { change(r) } }
}

// first runs change before the unmodified write.
func first(change func(stream *string, records *[]audit.Record) error) func(*sink) {
	return func(s *sink) {
		s.write = func(ctx context.Context, stream string, records []audit.Record) error {
			records = slices.Clone(records)
			if err := change(&stream, &records); err != nil {
				return err
			}
			return s.append(ctx, stream, records)
		}
	}
}

func keys(key func(string) string) func(*sink) { return func(s *sink) { s.key = key } }

func passes(passes func(kept []audit.Record, r audit.Record) bool) func(*sink) {
	return func(s *sink) { s.passes = passes }
}

func lost(lost func(error) error) func(*sink) { return func(s *sink) { s.lost = lost } }

// later keeps records in the background.
func later(ctx context.Context, s *sink, stream string, records []audit.Record, delay time.Duration) {
	time.AfterFunc(delay, func() { _ = s.append(context.WithoutCancel(ctx), stream, records) })
}

type lie struct {
	lie, property string
	change        func(*sink)
}

func lies() []lie {
	return []lie{
		{"ends a text at a NUL", exact, alters(func(r *audit.Record) { r.Target, _, _ = strings.Cut(r.Target, "\x00") })},
		{"trims actors", exact, alters(func(r *audit.Record) { r.Actor = strings.TrimSpace(r.Actor) })},
		{"lower-cases outcomes", exact, alters(func(r *audit.Record) { r.Outcome = strings.ToLower(r.Outcome) })},
		{"cuts targets at 255 bytes", exact, alters(func(r *audit.Record) { r.Target = r.Target[:min(len(r.Target), 255)] })},
		{"rounds durations", exact, alters(func(r *audit.Record) { r.Duration = float64(int(r.Duration)) })},
		{"masks passwords", exact, alters(func(r *audit.Record) { r.Arguments = bytes.ReplaceAll(r.Arguments, []byte("hunter2"), []byte("***")) })},
		{"forgets the trace", exact, alters(func(r *audit.Record) { r.TraceID = "" })},
		{"writes - for an empty workspace", exact, alters(func(r *audit.Record) { r.Workspace = cmp.Or(r.Workspace, "-") })},
		{"keeps times in seconds", exact, alters(func(r *audit.Record) { r.Time = r.Time.Truncate(time.Second) })},
		{"has 1970 for no time", exact, alters(func(r *audit.Record) {
			if r.Time.IsZero() {
				r.Time = time.Unix(0, 0)
			}
		})},
		{"reads numbers as floats", exact, alters(func(r *audit.Record) {
			var value any
			if json.Unmarshal(r.Arguments, &value) == nil {
				r.Arguments, _ = json.Marshal(value)
			}
		})},
		{"drops arguments that are null", exact, alters(func(r *audit.Record) {
			if string(r.Arguments) == "null" {
				r.Arguments = nil
			}
		})},
		{"keeps the last record of a batch first", exact, first(func(_ *string, records *[]audit.Record) error {
			if n := len(*records); n > 1 {
				(*records)[0], (*records)[n-1] = (*records)[n-1], (*records)[0]
				for i := range *records {
					(*records)[i].Sequence = uint64(i + 1) //nolint:gosec // small
				}
			}
			return nil
		})},

		{"keeps whatever sequence it has not kept", model, func(s *sink) {
			s.passes = func(kept []audit.Record, r audit.Record) bool {
				return slices.ContainsFunc(kept, func(has audit.Record) bool { return has.Sequence == r.Sequence })
			}
			show := s.show
			s.show = func(kept []audit.Record, after uint64, limit int) []audit.Record {
				kept = slices.Clone(kept)
				slices.SortFunc(kept, func(a, b audit.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
				return show(kept, after, limit)
			}
		}},
		{"passes over a whole batch for its first record", model, first(onlyNew)},
		{"counts sequences in 32 bits", model, passes(func(kept []audit.Record, r audit.Record) bool {
			return len(kept) > 0 && uint32(r.Sequence) <= uint32(kept[len(kept)-1].Sequence) //nolint:gosec // the lie
		})},
		{"lower-cases streams", model, keys(strings.ToLower)},
		{"writes _ for what is not a letter in streams", model, keys(func(stream string) string {
			return regexp.MustCompile(`[^0-9A-Za-z-]`).ReplaceAllString(stream, "_")
		})},
		{"cuts streams at 30 bytes", model, keys(func(stream string) string { return stream[:min(len(stream), 30)] })},
		{"takes batches without a stream", model, func(s *sink) {
			s.check = func(stream string, records []audit.Record) error {
				return audit.CheckWrite(cmp.Or(stream, "x"), records)
			}
		}},
		{"keeps what is good of a batch that it refuses", model, func(s *sink) {
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				err := s.append(ctx, stream, records)
				if errors.Is(err, plugins.ErrInvalid) && stream != "" {
					_ = s.append(ctx, stream, records[:1])
				}
				return err
			}
		}},
		{"refuses empty batches", model, first(func(_ *string, records *[]audit.Record) error {
			if len(*records) == 0 {
				return plugins.ErrInvalid
			}
			return nil
		})},
		{"begins with the given sequence", model, func(s *sink) {
			show := s.show
			s.show = func(kept []audit.Record, after uint64, limit int) []audit.Record {
				return show(kept, max(after, 1)-1, limit)
			}
		}},
		{"reads the number to begin after as a signed one", model, func(s *sink) {
			show := s.show
			s.show = func(kept []audit.Record, after uint64, limit int) []audit.Record {
				if after > 1<<63 {
					after = 0
				}
				return show(kept, after, limit)
			}
		}},

		{"shows what it read at its start", many, func(s *sink) {
			read := sync.OnceValue(s.follow)
			s.fresh = func() error { return read() }
		}},
		{"appends without a lock", many, func(s *sink) {
			s.fresh = func() error {
				end := s.end
				err := s.follow()
				if s.end-end > 200 {
					s.end = end + 200
				}
				return err
			}
		}},
		{"mixes the streams that are written at the same time", many, func(s *sink) {
			var last string
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				last = stream
				time.Sleep(time.Millisecond) //nolint:forbidigo // the lie
				return s.append(ctx, last, records)
			}
		}},

		{"acknowledges before it keeps", ends, func(s *sink) {
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				later(ctx, s, stream, records, time.Millisecond)
				return s.check(stream, records)
			}
		}},
		{"loses what it has gathered when it is killed", ends, func(s *sink) {
			var gathered []byte
			s.store = func(raw []byte) error {
				if gathered = append(gathered, raw...); len(gathered) < 4096 {
					return nil
				}
				defer func() { gathered = nil }()
				return s.appendTo(s.file, s.end+int64(len(raw)-len(gathered)), gathered)
			}
			s.fresh = func() error {
				if len(gathered) > 0 {
					return nil
				}
				return s.follow()
			}
		}},
		{"does not start on a line that is torn", ends, func(s *sink) { s.torn = func([]byte) bool { return false } }},
		{"appends to a line that is torn", ends, func(s *sink) {
			s.torn = func(line []byte) bool { return !json.Valid(line) }
			s.fresh = func() error {
				err := s.follow()
				if info, err := s.file.Stat(); err == nil && info.Size() > s.end {
					s.end = info.Size()
				}
				return err
			}
		}},
		{"takes a torn line for a whole one if it is JSON", ends, func(s *sink) { s.torn = func(line []byte) bool { return !json.Valid(line) } }},
		{"throws the file away when a line is torn", ends, func(s *sink) {
			follow := s.follow
			s.fresh = func() error {
				info, _ := s.file.Stat()
				raw := make([]byte, info.Size()-s.end)
				_, _ = s.file.ReadAt(raw, s.end)
				if len(raw) > 0 && !bytes.HasSuffix(raw, []byte("\n")) {
					s.end, s.streams = 0, map[string][]audit.Record{}
					return s.file.Truncate(0)
				}
				return follow()
			}
		}},

		{"remembers 100 streams", amounts, func(s *sink) {
			var order []string
			s.passes = func(kept []audit.Record, r audit.Record) bool {
				return len(kept) > 0 && r.Sequence <= kept[len(kept)-1].Sequence
			}
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				s.mu.Lock()
				if order = append(order, stream); len(order) > 100 {
					delete(s.streams, order[0])
					order = order[1:]
				}
				s.mu.Unlock()
				return s.append(ctx, stream, records)
			}
		}},
		{"keeps the last 5,000 records", amounts, func(s *sink) {
			show := s.show
			s.show = func(kept []audit.Record, after uint64, limit int) []audit.Record {
				return show(kept[max(0, len(kept)-5000):], after, limit)
			}
		}},
		{"finds no record of more than 64 KiB at its start", amounts, func(s *sink) {
			start := sync.OnceFunc(func() {
				for name, all := range s.streams {
					s.streams[name] = slices.DeleteFunc(all, func(r audit.Record) bool { return len(r.Arguments) > 64<<10 })
				}
			})
			s.fresh = func() error {
				defer start()
				return s.follow()
			}
		}},
		{"refuses batches of more than 5 MiB", amounts, first(func(_ *string, records *[]audit.Record) error {
			total := 0
			for _, r := range *records {
				total += len(r.Arguments) + len(r.Target)
			}
			if total > 5<<20 {
				return plugins.ErrInvalid
			}
			return nil
		})},
		{"leaves out arguments of more than a megabyte", amounts, alters(func(r *audit.Record) {
			if len(r.Arguments) > 1<<20 {
				r.Arguments = nil
			}
		})},
		{"keeps 500 records of a batch", amounts, first(func(_ *string, records *[]audit.Record) error {
			*records = (*records)[:min(len(*records), 500)]
			return nil
		})},

		{"acknowledges while its disk is away", fails, lost(func(error) error { return nil })},
		{"answers an internal error while its disk is away", fails, lost(func(err error) error { return err })},
		{"answers that a record is invalid while its disk is away", fails, lost(func(error) error { return plugins.ErrInvalid })},
		{"keeps for later while its disk is away", fails, func(s *sink) {
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				err := s.append(ctx, stream, records)
				if errors.Is(err, plugins.ErrUnavailable) {
					later(ctx, s, stream, records, time.Second)
					return nil
				}
				return err
			}
		}},
		{"waits for its disk beyond the deadline", fails, func(s *sink) {
			s.reach = func(ctx context.Context) error { return s.disk.reach(context.WithoutCancel(ctx)) }
			append := s.append
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				done := make(chan error, 1)
				go func() { done <- append(ctx, stream, records) }()
				select {
				case err := <-done:
					return err
				case <-time.After(5 * time.Second):
					return plugins.ErrUnavailable
				}
			}
		}},
		{"remembers what it could not keep as kept", fails, func(s *sink) {
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				err := s.append(ctx, stream, records)
				if errors.Is(err, plugins.ErrUnavailable) {
					s.mu.Lock()
					s.streams[stream] = append(s.streams[stream], records...)
					s.mu.Unlock()
				}
				return err
			}
		}},
		{"leaves a part of a record that there was no space for", fails, func(s *sink) {
			s.undo = func() error { return nil }
			read := sync.OnceValue(s.follow)
			s.fresh = func() error { return read() }
			s.store = func(raw []byte) error {
				info, err := s.file.Stat()
				if err != nil {
					return err
				}
				return s.appendTo(s.file, info.Size(), raw)
			}
		}},
	}
}

// onlyNew skips a whole batch if its first record looks like a kept one with other contents.
func onlyNew(_ *string, records *[]audit.Record) error {
	if all := *records; len(all) > 0 && all[0].Target == "other" {
		*records = nil
	}
	return nil
}

func TestTheKitDemandsWhatTheContractSays(t *testing.T) {
	plugintest.Sentences(t, "audit", audittest.Properties())
}

func TestRightSinksPassHoweverUnusualTheyAre(t *testing.T) {
	for name, change := range map[string]func(*sink){
		"the usual one": func(*sink) {},
		"one that reads a record at a time": func(s *sink) {
			show := s.show
			s.show = func(kept []audit.Record, after uint64, _ int) []audit.Record { return show(kept, after, 1) }
		},
		"one that keeps the records of a batch one by one": func(s *sink) {
			s.write = func(ctx context.Context, stream string, records []audit.Record) error {
				if err := s.check(stream, records); err != nil {
					return err
				}
				for i := range records {
					if err := s.append(ctx, stream, records[i:i+1]); err != nil {
						return err
					}
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try := trial()
			if name != "the usual one" {
				try.Effort = kit.Quick
			}
			plugintest.Judge(t, audittest.Properties(), try, open(t, change))
		})
	}
}

// trial returns a normal trial with a short start time, because these sinks start at once.
func trial() kit.Trial {
	t := plugintest.Trial(kit.Normal)
	t.Start = 3 * time.Second
	return t
}

func TestLiarsAreCaught(t *testing.T) {
	var all []plugintest.Liar[audittest.Subject]
	for _, l := range lies() {
		all = append(all, plugintest.Liar[audittest.Subject]{Lie: l.lie, Property: l.property, Open: func(t *testing.T) audittest.Subject { return open(t, l.change) }})
	}
	plugintest.Liars(t, audittest.Properties(), trial(), all)
}
