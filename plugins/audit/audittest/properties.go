package audittest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// The names of the properties.
const (
	Histories = "after every history of calls and restarts, a sink has the same records as the model"
	Writers   = "servers that write concurrently do not lose, duplicate or mix up records"
	Endings   = "acknowledged records are kept however a process ends, and no record is kept in part"
	Failing   = "records that cannot be kept now are not acknowledged, and are kept when they are sent again"
	Amounts   = "old repeats, large records and long streams are handled like any others"
)

// Properties returns what the contract requires of an audit sink.
func Properties() []kit.Property[Subject] {
	contract := kit.Contract("audit")
	return []kit.Property[Subject]{
		{Name: Histories, Sentences: contract, Try: histories},
		{Name: Writers, Sentences: contract, Try: writers},
		{Name: Endings, Sentences: contract, Try: endings},
		{Name: Failing, Sentences: contract, Try: failing},
		{Name: Amounts, Sentences: contract, Try: amounts},
	}
}

// values returns JSON values for the arguments of a record.
func values() []string {
	return []string{
		"", "null", "false", "0", `""`, "[]", "{}", `[null]`, `{"a":null,"":"","A":1,"a ":2}`, "12345678901234567890", "0.1000000000000000055511151231257827", "1e400", "-0", `"\u0000\ud83e\udea2"`,
		`{"<&>":"\u2028"}`, strings.Repeat("[", 200) + strings.Repeat("]", 200), `{"b":1,"a":{"d":[1,2.50,"x"]}}`,
		`{"password":"hunter2","Token":"x","api_key":"y","secret":{"authorization":"Bearer z"},"list":[{"passwd":"p","cookie":"c"}],"email":"alice@example.com"}`,
	}
}

// times returns values for the time of a record.
func times() []time.Time {
	return []time.Time{{}, time.UnixMilli(1), time.UnixMilli(-1), time.Unix(0, 0), time.Date(1901, 1, 1, 0, 0, 0, 5e6, time.UTC), time.Date(2039, 1, 1, 0, 0, 0, 999e6, time.UTC),
		time.Date(2107, 5, 5, 0, 0, 0, 1e6, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), time.Date(2026, 3, 29, 1, 30, 0, 7e6, time.UTC)}
}

// textFields returns the text fields of a record.
func textFields(rec *audit.Record) (all []*string) {
	v := reflect.ValueOf(rec).Elem()
	for i := range v.NumField() {
		if field, ok := v.Field(i).Addr().Interface().(*string); ok {
			all = append(all, field)
		}
	}
	return all
}

// fill fills a record with random values from r. In some records, one field is long.
func fill(r *rand.Rand, rec *audit.Record) {
	all := append(kit.Texts(), "", " ", "x\n", "OK", "Ok", "kit-"+fmt.Sprint(r.Uint32()), strings.Repeat("é", 200), `{"stream":"x","sequence":1}`)
	fields := textFields(rec)
	for _, field := range fields {
		*field = all[r.IntN(len(all))]
	}
	if r.IntN(8) == 0 {
		*fields[r.IntN(len(fields))] = strings.Repeat("long ", 20<<10)
	}
	rec.Time = times()[r.IntN(len(times()))]
	if r.IntN(2) == 0 {
		rec.Time = time.UnixMilli(r.Int64N(5e12) - 1e12).UTC()
	}
	rec.Duration = []float64{0, 1, 0.001, 12.5, 1234.567, 86_400_000.25, 1e15 + 1, r.ExpFloat64()}[r.IntN(8)]
	rec.Arguments = nil
	if value := values()[r.IntN(len(values()))]; value != "" {
		rec.Arguments = json.RawMessage(value)
	}
}

// histories generates calls and restarts, and compares the sink with the model after each.
func histories(ctx context.Context, t *kit.Trial, s Subject) {
	n := t.Count(60)
	t.Explore(ctx, 1, n, func(ctx context.Context, draw *rapid.T) {
		w := s.begin(ctx, t)
		defer w.end()
		prefix := newStream().name
		odd := rapid.SampledFrom([]string{" ", "Kit", "a/../b", "%41", "é", "e\u0301", "a\x00b", `"`, "a:b", "*"}).Draw(draw, "odd name") + prefix
		streams := []*stream{{name: prefix}, {name: strings.ToLower(prefix)}, {name: prefix + strings.Repeat("x", 128-len(prefix))}, {name: odd}}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(draw, "contents"), 0)) //nolint:gosec // must be reproducible
		for _, one := range streams {
			one.random, one.begins = random, rapid.SampledFrom([]uint64{0, 0, 0, 1<<31 - 3, 1<<53 - 3, 1<<63 - 3, 1<<64 - 300}).Draw(draw, "begins")
		}
		for range rapid.IntRange(1, 12).Draw(draw, "steps") {
			one := streams[rapid.IntRange(0, len(streams)-1).Draw(draw, "stream")]
			w.step(draw, one)
			w.check(one, differ)
		}
		for _, one := range streams {
			w.check(one, differ)
		}
	})
	t.Cover("%d histories of up to 12 writes, repeats, refused batches, reads and restarts on 4 streams with almost the same names, with any text in any field, times from 1901 to 9999, and arguments of every kind", n)
	s.alike(ctx, t)
}

// alike writes to streams with names that a careless sink might confuse, before and after a kill.
func (s Subject) alike(ctx context.Context, t *kit.Trial) {
	w, n := s.begin(ctx, t), t.Count(kit.Families)
	defer func() { w.end() }()
	for _, family := range t.Rand(-1).Perm(kit.Families)[:min(n, kit.Families)] {
		w.history = nil
		var streams []*stream
		for _, name := range kit.Alike(newStream().name, family) {
			streams = append(streams, &stream{name: name})
		}
		for range 2 {
			for i, one := range streams {
				w.write(one, one.next(1+i, 1))
			}
			w.again(true)
		}
		for _, one := range streams {
			w.check(one, differ)
		}
	}
	t.Cover("%d groups of streams with names that are easily confused", min(n, kit.Families))
}

// step performs one random operation on a stream.
func (w *world) step(draw *rapid.T, s *stream) {
	switch rapid.IntRange(0, 9).Draw(draw, "what") {
	default:
		gap := rapid.SampledFrom([]uint64{1, 1, 2, 1000, 1 << 31, 1 << 53}).Draw(draw, "gap")
		if s.last() > 1<<63 { // so that sequences do not overflow
			gap = 1
		}
		w.write(s, s.next(rapid.IntRange(1, 6).Draw(draw, "records"), gap))
	case 3, 4: // kept records, possibly with other contents, a skipped sequence, or new records
		if len(s.kept) == 0 {
			w.write(s, s.next(3, 2))
			return
		}
		from := rapid.IntRange(0, len(s.kept)-1).Draw(draw, "from")
		batch := append([]audit.Record{}, s.kept[from:]...)
		if rapid.Bool().Draw(draw, "other contents") {
			for i := range batch {
				batch[i].Target = "other"
			}
		}
		if first := batch[0].Sequence; rapid.Bool().Draw(draw, "left out") && first > 1 && (from == 0 || s.kept[from-1].Sequence < first-1) {
			batch = append([]audit.Record{record(first - 1)}, batch...)
		}
		if rapid.Bool().Draw(draw, "new") {
			batch = append(batch, s.next(2, 1)...)
		}
		w.write(s, batch)
	case 5:
		w.refuses(s, rapid.IntRange(0, 4).Draw(draw, "how"))
	case 6:
		w.write(s, nil)
	case 7:
		w.again(rapid.Bool().Draw(draw, "kill"))
	case 8:
		w.pages(s, rapid.Uint64().Draw(draw, "after"), rapid.IntRange(1, 4).Draw(draw, "limit"))
	}
}

// refuses writes an invalid batch, and then its records in a valid one.
func (w *world) refuses(s *stream, how int) {
	batch, name := s.next(3, 1), s.name
	good := append([]audit.Record{}, batch...)
	switch how {
	case 0:
		name = ""
	case 1:
		batch[0].Sequence = 0
	case 2:
		batch[1].Sequence = batch[2].Sequence
	case 3:
		batch[0], batch[2] = batch[2], batch[0]
	case 4:
		if len(s.kept) > 0 { // repeats a kept record
			batch = []audit.Record{s.kept[len(s.kept)-1], s.kept[len(s.kept)-1]}
		}
	}
	w.note("Write to %.20q: an invalid batch: sequences %d, %d", name, batch[0].Sequence, batch[1].Sequence)
	if how == 4 && len(s.kept) == 0 {
		return
	}
	if err := w.p.Sink.Write(w.ctx, name, batch); !errors.Is(err, plugins.ErrInvalid) {
		w.fail(kit.ErrorText(err), "INVALID_ARGUMENT", refused)
	}
	w.check(s, refused)
	w.write(s, good)
	w.check(s, comeAgain)
}

// pages reads part of a stream.
func (w *world) pages(s *stream, after uint64, limit int) {
	reader, ok := w.p.Sink.(audit.Reader)
	if !ok {
		return
	}
	afters := []uint64{after, 0, 1<<63 - 1, 1<<64 - 1}
	for _, r := range s.kept {
		afters = append(afters, r.Sequence-1, r.Sequence, r.Sequence+1)
	}
	for _, after := range afters {
		got, err := reader.Read(w.ctx, s.name, after, limit)
		w.history = append(w.history[:len(w.history):len(w.history)], fmt.Sprintf("Read of %.20q after %d, at most %d", s.name, after, limit))
		if err != nil {
			w.fail("the error "+kit.ErrorText(err), "records, or none", unknown)
		}
		var want []audit.Record
		for _, r := range s.kept {
			if r.Sequence > after {
				want = append(want, r)
			}
		}
		if len(got) > limit || len(got) > len(want) || len(got) == 0 && len(want) > 0 {
			w.fail(fmt.Sprintf("%d records", len(got)), fmt.Sprintf("1 to %d of the %d that follow", limit, len(want)), howMany)
		}
		for i := range got {
			if why := different(got[i], want[i]); why != "" {
				w.fail("a record with "+why, "the records that follow", ascending)
			}
		}
		w.history = w.history[:len(w.history)-1]
	}
}

// writers has several servers write concurrently, each to its own stream, in two processes if the sink allows
// it.
func writers(ctx context.Context, t *kit.Trial, s Subject) {
	worlds := []*world{s.begin(ctx, t)}
	defer worlds[0].end()
	if !s.Exclusive {
		worlds = append(worlds, s.begin(ctx, t))
		defer worlds[1].end()
	}
	n := t.Count(20)
	streams := make([]*stream, 24)
	kit.AtOnce(ctx, len(streams), len(streams), func(ctx context.Context, i int) {
		streams[i] = newStream()
		own := &world{Subject: s, ctx: ctx, t: t, p: worlds[i%len(worlds)].p}
		own.note("while %d other servers write to %d processes, for %d batches:", len(streams)-1, len(worlds), n)
		for j := range n {
			batch := streams[i].next(1+j%5, 1)
			if own.write(streams[i], batch); j%3 == 2 {
				own.history = own.history[:1]
				own.write(streams[i], batch) // as if the response had been lost
				other := *own
				other.p = worlds[(i+1)%len(worlds)].p
				other.check(streams[i], atOnce)
			}
		}
	})
	for _, w := range worlds {
		w.note("%d servers write %d batches each to %d processes at the same time", len(streams), n, len(worlds))
		for _, one := range streams {
			w.check(one, servers)
		}
	}
	// A server moves a stream to another process, and back.
	one := streams[0]
	for i := range min(n, 10) {
		worlds[i%len(worlds)].write(one, append(one.kept[len(one.kept)-1:], one.next(1, 1)...))
		for _, w := range worlds {
			w.check(one, atOnce)
		}
	}
	t.Cover("%d servers with %d batches each, in %d processes at the same time", len(streams), n, len(worlds))
}

// amounts writes as much as the contract allows, and repeats all of it.
func amounts(ctx context.Context, t *kit.Trial, s Subject) {
	w := s.begin(ctx, t)
	defer w.end()
	old, many := newStream(), t.Count(200)
	first := old.next(20, 1)
	w.write(old, first)
	w.write(newStream(), nil)
	others := make([]*stream, many)
	for i := range others {
		others[i] = newStream()
		w.write(others[i], others[i].next(1, 1))
	}
	long := newStream()
	for range t.Count(60)/10 + 1 {
		w.write(long, long.next(audit.MaxRecords, 1))
	}
	for _, kill := range []bool{false, true} { // repeats in the same process, then in a new one
		w.history = []string{fmt.Sprintf("%d records to one stream, 20 to one that is older, 1 to each of %d others", len(long.kept), many)}
		for _, one := range append(others[:min(many, 20)], old, long) {
			w.write(one, one.kept[:min(len(one.kept), 20, max(1, 8/len(one.kept)))])
			w.check(one, however)
		}
		w.write(old, first)
		w.check(old, however)
		w.again(kill)
	}
	large := newStream()
	for _, sizes := range [][]int{{audit.MaxArguments - 2}, {3 << 20, 3 << 20}, {audit.MaxBatch - 4096}, {3 << 20}, {3 << 20}} {
		batch := large.next(len(sizes), 1)
		for i, size := range sizes {
			if batch[i].Arguments = json.RawMessage(`"` + strings.Repeat("x", min(size, audit.MaxArguments-2)) + `"`); size > audit.MaxArguments {
				batch[i].Target = strings.Repeat("y", size-audit.MaxArguments)
			}
		}
		w.writes(large, batch, upTo)
	}
	fields := len(textFields(&audit.Record{}))
	for from := 0; from < fields; from += 5 {
		batch := large.next(min(5, fields-from), 1)
		for i := range batch {
			*textFields(&batch[i])[from+i] = strings.Repeat("z", 3<<19)
		}
		w.writes(large, batch, exactly)
	}
	w.write(large, large.kept[:1])
	for _, sentence := range []string{atOnce, durable} {
		w.check(long, sentence)
		w.check(large, sentence)
		w.again(true)
	}
	t.Cover("repeats of streams with %d records, before %d others, before and after restarts, and a stream of 35 MiB", len(long.kept), many)
}
