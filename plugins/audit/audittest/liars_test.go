package audittest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/audit/audittest"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
)

// lie is a sink that breaks one promise, and the check that must catch it.
type lie struct {
	what  string
	check string
	open  func(*process) audit.Sink
}

func lies() []lie { return slices.Concat(recordLies(), repeatLies(), processLies(), boundaryLies()) }

func recordLies() []lie {
	const order, fields, long, text, empty = "records come back in the order of their batch", "every field comes back", "long values come back whole", "any text comes back byte for byte", "empty fields stay empty"
	const times, arguments, thousand = "times come back to the millisecond", "arguments come back as the same JSON value", "a batch of 1,000 records is kept whole"
	return []lie{
		{"keeps the last record of a batch first", order, batches(func(all []audit.Record) []audit.Record { slices.Reverse(all); return all })},
		{"keeps every other record of a batch", order, batches(func(all []audit.Record) []audit.Record {
			return slices.DeleteFunc(all, func(r audit.Record) bool { return r.Sequence%2 == 0 })
		})},
		{"forgets the trace", fields, changes(func(r *audit.Record) { r.TraceID = "" })},
		{"swaps target and workspace", fields, changes(func(r *audit.Record) { r.Target, r.Workspace = r.Workspace, r.Target })},
		{"keeps the outcome of the first record", fields, batches(func(all []audit.Record) []audit.Record {
			for i := range all {
				all[i].Outcome = all[0].Outcome
			}
			return all
		})},
		{"cuts targets at 255 bytes", long, changes(func(r *audit.Record) { r.Target = r.Target[:min(len(r.Target), 255)] })},
		{"cuts actions at 64 KiB", long, changes(func(r *audit.Record) { r.Action = r.Action[:min(len(r.Action), 64<<10)] })},
		{"shortens long addresses", long, changes(func(r *audit.Record) {
			if len(r.Address) > 100 {
				r.Address = r.Address[:50] + "..." + r.Address[len(r.Address)-50:]
			}
		})},
		{"ends a text at a NUL", text, changes(func(r *audit.Record) { r.Target, _, _ = strings.Cut(r.Target, "\x00") })},
		{"trims actors", text, changes(func(r *audit.Record) { r.Actor = strings.TrimSpace(r.Actor) })},
		{"normalizes targets", text, changes(func(r *audit.Record) { r.Target = strings.ReplaceAll(r.Target, "A\u0308", "Ä") })},
		{"escapes HTML", text, changes(func(r *audit.Record) { r.Action = html.EscapeString(r.Action) })},
		{"writes a line break as a space", text, changes(func(r *audit.Record) { r.RequestID = strings.ReplaceAll(r.RequestID, "\n", " ") })},
		{"keeps 16 bits of each character", text, changes(func(r *audit.Record) {
			r.Target = strings.Map(func(c rune) rune { return c & 0xffff }, r.Target)
		})},
		{"lower-cases outcomes", text, changes(func(r *audit.Record) { r.Outcome = strings.ToLower(r.Outcome) })},
		{"writes - for an empty workspace", empty, changes(func(r *audit.Record) {
			if r.Workspace == "" {
				r.Workspace = "-"
			}
		})},
		{"fills an empty actor with that of the record before", empty, batches(func(all []audit.Record) []audit.Record {
			for i := 1; i < len(all); i++ {
				if all[i].Actor == "" {
					all[i].Actor = all[i-1].Actor
				}
			}
			return all
		})},
		{"keeps times in seconds", times, changes(func(r *audit.Record) { r.Time = r.Time.Truncate(time.Second) })},
		{"keeps the time of the write", times, changes(func(r *audit.Record) { r.Time = time.Now() })},
		{"counts milliseconds in 41 bits of 1970", times, changes(func(r *audit.Record) { r.Time = time.UnixMilli(r.Time.UnixMilli() & (1<<41 - 1)) })},
		{"reads numbers as floats", arguments, changes(func(r *audit.Record) {
			var v any
			if len(r.Arguments) > 0 && json.Unmarshal(r.Arguments, &v) == nil {
				r.Arguments, _ = json.Marshal(v)
			}
		})},
		{"drops arguments that are null", arguments, changes(func(r *audit.Record) {
			if string(r.Arguments) == "null" {
				r.Arguments = nil
			}
		})},
		{"keeps arguments that are objects only", arguments, changes(func(r *audit.Record) {
			if !bytes.HasPrefix(r.Arguments, []byte("{")) {
				r.Arguments = nil
			}
		})},
		{"keeps 500 records of a batch", thousand, batches(func(all []audit.Record) []audit.Record { return all[:min(len(all), 500)] })},
		{"refuses batches of more than 999 records", thousand, func(p *process) audit.Sink {
			return hooks{process: p, write: func(ctx context.Context, stream string, all []audit.Record) error {
				if len(all) > 999 {
					return plugins.ErrInvalid
				}
				return p.Write(ctx, stream, all)
			}}
		}},
		{"leaves out arguments of more than a megabyte", "a record with arguments of 4 MiB is kept", changes(func(r *audit.Record) {
			if len(r.Arguments) > 1e6 {
				r.Arguments = nil
			}
		})},
		{"keeps one of equal records", "records that differ in nothing but their sequence are all kept", batches(func(all []audit.Record) []audit.Record {
			return slices.CompactFunc(all, func(a, b audit.Record) bool { return a.RequestID == b.RequestID && a.Time.Equal(b.Time) })
		})},
		{"keeps the last 5,000 records", "old records stay when many follow", reads(func(all []audit.Record) []audit.Record { return all[max(0, len(all)-5000):] })},
		{"counts sequences as floats", "sequences of up to 62 bits are exact", changes(func(r *audit.Record) { r.Sequence = uint64(float64(r.Sequence)) })},
		{"counts sequences in 32 bits", "sequences of up to 62 bits are exact", changes(func(r *audit.Record) { r.Sequence = max(1, r.Sequence&(1<<32-1)) })},
		{"numbers the records itself", "sequences of up to 62 bits are exact", batches(func(all []audit.Record) []audit.Record {
			for i := range all {
				all[i].Sequence = all[0].Sequence + uint64(i)
			}
			return all
		})},
	}
}

func TestEachLieIsCaughtByItsCheck(t *testing.T) {
	for _, l := range lies() {
		t.Run(l.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := slices.DeleteFunc(audittest.Checks(), func(c audittest.Check) bool { return c.Name != l.check })
				if failed := kit.Failed(kit.Run(t.Context(), check, subject(l.open))); len(failed) != 1 {
					t.Errorf("not caught by the check %q", l.check)
				}
				time.Sleep(2 * time.Hour) //nolint:forbidigo // until a liar that sleeps is awake, by the clock of the bubble
			})
		})
	}
}

func TestAnHonestSinkIsNotCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, result := range kit.Run(t.Context(), audittest.Checks(), subject(func(p *process) audit.Sink { return p })) {
			if result.Err != nil || result.Skipped != "" {
				t.Errorf("%s: %v, skipped: %q", result.Name, result.Err, result.Skipped)
			}
		}
	})
}

func TestASinkWhoseBackendHasOneWriterIsKilledInPlace(t *testing.T) {
	const kill = "records that were acknowledged survive kill -9"
	for name, want := range map[string]int{"honest": 0, "acknowledges before it keeps": 1} {
		synctest.Test(t, func(t *testing.T) {
			open := func(p *process) audit.Sink { return p }
			if i := slices.IndexFunc(lies(), func(l lie) bool { return l.what == name }); i >= 0 {
				open = lies()[i].open
			}
			s := subject(open)
			s.Exclusive, s.Restart = true, func(ctx context.Context) error {
				p, err := s.Open(ctx)
				s.Sink.(*exchanged).kill()
				s.Sink.(*exchanged).Reader, s.Sink.(*exchanged).kill = p.Sink.(audit.Reader), p.Kill
				return err
			}
			first, _ := s.Open(t.Context())
			s.Sink = &exchanged{first.Sink.(audit.Reader), first.Kill}
			failed := kit.Failed(kit.Run(t.Context(), audittest.Checks(), s))
			if len(failed) < want || want == 0 && len(failed) > 0 || want == 1 && !slices.Contains(failed, kill) {
				t.Errorf("%s: caught by %q", name, failed)
			}
			time.Sleep(2 * time.Hour) //nolint:forbidigo // until a liar that sleeps is awake, by the clock of the bubble
		})
	}
}

// exchanged is a sink whose process is another one after a restart.
type exchanged struct {
	audit.Reader
	kill func()
}

func TestWhatCannotBeSeenIsSkippedAndNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hidden := subject(func(p *process) audit.Sink { return struct{ audit.Sink }{p} }) // without Read
		passed := 0
		for _, result := range kit.Run(t.Context(), audittest.Checks(), hidden) {
			if result.Err != nil {
				t.Errorf("%s: %v", result.Name, result.Err)
			}
			if result.Skipped == "" {
				passed++
			}
		}
		if want := 6; passed != want { // refusals, deadlines and the backend
			t.Errorf("%d checks passed on a sink that shows nothing, want %d", passed, want)
		}
	})
}

func TestTheKitDemandsWhatItsContractSays(t *testing.T) {
	plugintest.InContract(t, "audit", audittest.Checks())
}

// hooks is an honest process but for its hooks.
type hooks struct {
	*process
	write func(ctx context.Context, stream string, records []audit.Record) error
	read  func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error)
	close func()
}

func (h hooks) Write(ctx context.Context, stream string, records []audit.Record) error {
	if h.write == nil {
		return h.process.Write(ctx, stream, records)
	}
	return h.write(ctx, stream, records)
}

func (h hooks) Read(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
	if h.read == nil {
		return h.process.Read(ctx, stream, after, limit)
	}
	return h.read(ctx, stream, after, limit)
}

func (h hooks) Close() error {
	if h.close != nil {
		h.close()
	}
	return nil
}

// batches is a sink that changes batches before it keeps them as they then are.
func batches(change func([]audit.Record) []audit.Record) func(*process) audit.Sink {
	return func(p *process) audit.Sink {
		return hooks{process: p, write: func(ctx context.Context, stream string, records []audit.Record) error {
			if err := p.begin(ctx, stream, records); err != nil {
				return err
			}
			p.disk.force(stream, change(slices.Clone(records)))
			return nil
		}}
	}
}

// changes is a sink that changes each record.
func changes(change func(*audit.Record)) func(*process) audit.Sink {
	return batches(func(all []audit.Record) []audit.Record {
		for i := range all {
			change(&all[i])
		}
		return all
	})
}

// reads is a sink that shows other records than it has.
func reads(change func([]audit.Record) []audit.Record) func(*process) audit.Sink {
	return func(p *process) audit.Sink {
		return hooks{process: p, read: func(ctx context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
			return page(change(p.disk.of(stream)), after, limit), p.disk.reach(ctx)
		}}
	}
}

var errInternal = errors.New("connection refused")

func unavailable(what string) error { return fmt.Errorf("%w: %s", plugins.ErrUnavailable, what) }
