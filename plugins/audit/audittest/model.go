package audittest

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// Subject is the audit sink under test, and what can be done to it.
type Subject struct {
	// Open starts a process of the sink on its backend, as a server does. The process has the records that earlier ones
	// have kept.
	Open func(ctx context.Context) (*Process, error)
	// Exclusive is set if only one process may use the backend at a time.
	Exclusive bool
	// Receiver gets the records of a sink without the capability "read".
	Receiver *Receiver
	// Backend makes the backend of all processes unavailable and available again; nil if that is not possible.
	Backend kit.Backend
	// Data is the directory in which the sink keeps its files; "" if it is unknown or there is none.
	Data string
	// Fixed is set if the sink has neither a backend nor files.
	Fixed bool
}

// Process is a process of a sink.
type Process struct {
	Sink  audit.Sink
	Kill  func()                   // kills it, without a chance to finish anything
	Close func()                   // ends it as a server does
	Limit func(length int64) error // prevents its files from growing beyond length, as if the disk were full; a negative length removes the limit. May be nil
}

// Connected returns the sink at the other end of conn, a process that a Go test has started. The kit does not restart
// the process.
func Connected(ctx context.Context, conn grpc.ClientConnInterface) (Subject, error) {
	about, err := host.NewControl(conn).Info(ctx)
	if err != nil {
		return Subject{}, err
	}
	sink := audit.Client(conn)
	if !slices.Contains(about.Capabilities, plugins.CapabilityRead) {
		sink = struct{ audit.Sink }{sink} // hides Read, which every client has
	}
	nothing := func() {}
	return Subject{Exclusive: slices.Contains(about.Capabilities, plugins.CapabilityExclusive), Fixed: true, Open: func(context.Context) (*Process, error) {
		return &Process{Sink: sink, Kill: nothing, Close: nothing}, nil
	}}, nil
}

// The sentences of the contract that failures cite.
const (
	inOrder   = "Write stores records in the order of the batch"
	durable   = "it survives the end of the process at any moment"
	onlyFirst = "the sink may have kept the first records of the batch, in order and up to any one of them, but none after a record that it did not keep"
	notNow    = "UNAVAILABLE if the records could not be kept now"
	noHope    = "nothing is acknowledged in the hope of storing it later"
	keptOnce  = "it is skipped, whatever it contains, and the result is OK"
	however   = "this holds for every stream and record that it has, however old, across restarts and in every process"
	differ    = "Records that differ only in their sequence, or only in their stream, are different records"
	refused   = "INVALID_ARGUMENT, and nothing of the batch is kept"
	comeAgain = "The records of a refused batch are kept if they are sent again in a valid batch"
	exactly   = "exactly as they were written: any text may be in any field, however long, times are exact to the millisecond"
	ascending = "with a sequence higher than a given one, in ascending order"
	atOnce    = "A record can be read as soon as its Write has returned, in every process of the sink, and no newer record ever replaces it"
	unknown   = "An unknown stream has no records, which is not an error"
	howMany   = "The result may have fewer, but has at least one if there is one"
	servers   = "Several servers may write to one sink, each its own stream"
	soon      = "carries a deadline and returns soon after it passes"
	upTo      = "Up to 1,000 records, 8 MiB in total"
)

// patience is how long after its deadline a call may return.
const patience = 2 * time.Second

// world is a sink with the streams that one history writes.
type world struct {
	Subject
	ctx     context.Context //nolint:containedctx // of one history
	t       *kit.Trial
	p       *Process // the current process
	history []string
}

// stream is the model of one stream.
type stream struct {
	name    string
	kept    []audit.Record // in order
	perhaps []audit.Record // a batch whose first records may have been kept
	random  *rand.Rand     // generates the contents of further records; nil if all are alike
	begins  uint64         // the stream has no lower sequence
}

// begin starts a process for a history.
func (s Subject) begin(ctx context.Context, t *kit.Trial) *world {
	p, err := s.Open(ctx)
	if err != nil {
		kit.Must(fmt.Errorf("start a process: %w", err))
	}
	if _, reads := p.Sink.(audit.Reader); !reads && s.Receiver == nil {
		p.Close()
		kit.Must(kit.CannotJudge(`the sink does not have the capability "read": write ${receiver} in the settings where the address of its receiver belongs, http://${receiver}/audit for example`))
	}
	return &world{Subject: s, ctx: ctx, t: t, p: p}
}

func (w *world) end() { w.p.Close() }

// note adds a step to the history.
func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf(format, args...))
}

// fail ends the property.
func (w *world) fail(answered, demanded, sentence string) {
	steps := w.history
	if len(steps) > 25 {
		steps = append([]string{fmt.Sprintf("(%d steps before)", len(steps)-25)}, steps[len(steps)-25:]...)
	}
	kit.Reject(answered, demanded, sentence, steps...)
}

// again ends the process and starts the next one.
func (w *world) again(kill bool) {
	w.note("%s, and start the next process", map[bool]string{true: "kill -9", false: "end the process"}[kill])
	if kill {
		w.p.Kill()
	}
	w.p.Close()
	w.p = &Process{Close: func() {}}
	p, err := w.Open(w.ctx)
	if err != nil {
		w.fail(fmt.Sprintf("it does not start: %v", err), "a start with the records that it has", durable)
	}
	w.p = p
}

func newStream() *stream { return &stream{name: "kit-" + cryptorand.Text()} }

// last returns the highest sequence that the stream has, or may have.
func (s *stream) last() uint64 {
	for _, all := range [][]audit.Record{s.perhaps, s.kept} {
		if len(all) > 0 {
			return all[len(all)-1].Sequence
		}
	}
	return s.begins
}

// next creates the n records that follow, with this gap between their sequences.
func (s *stream) next(n int, gap uint64) []audit.Record {
	all := make([]audit.Record, n)
	for i := range all {
		if all[i] = record(s.last() + uint64(i+1)*gap); s.random != nil {
			fill(s.random, &all[i])
		}
	}
	return all
}

// record returns a record with this sequence and arbitrary contents.
func record(sequence uint64) audit.Record {
	return audit.Record{
		Sequence: sequence, Time: time.Date(2026, 11, 22, 18, 20, 21, 123e6, time.UTC), Actor: "usr_kit", Action: "tools.call",
		Target: "files__read", Outcome: "ok", Workspace: "ws_default", RequestID: "req_kit", Arguments: json.RawMessage(`{"a":1}`),
	}
}

// timeout is the deadline of a call that should succeed.
const timeout = 30 * time.Second

// write writes records that must be kept, and adds them to the model.
func (w *world) write(s *stream, records []audit.Record) { w.writes(s, records, inOrder) }

func (w *world) writes(s *stream, records []audit.Record, sentence string) {
	ctx, cancel := context.WithTimeout(w.ctx, w.t.Limit(timeout))
	defer cancel()
	w.note("Write to %.20q: %s", s.name, numbers(records))
	if err := w.p.Sink.Write(ctx, s.name, records); err != nil {
		w.fail("the error "+kit.ErrorText(err), "OK", sentence)
	}
	s.keep(records)
}

// keep performs a Write in the model.
func (s *stream) keep(records []audit.Record) {
	all := s.kept
	for _, r := range records {
		if len(all) == 0 || all[len(all)-1].Sequence < r.Sequence {
			all = append(all, r)
		}
	}
	s.kept, s.perhaps = all, nil
}

func numbers(records []audit.Record) string {
	if len(records) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d records, %d to %d", len(records), records[0].Sequence, records[len(records)-1].Sequence)
}

// read reads a stream to its end.
func (w *world) read(name string) (kept []audit.Record) {
	ctx, cancel := context.WithTimeout(w.ctx, 4*w.t.Limit(timeout))
	defer cancel()
	read := w.Receiver.records
	if reader, ok := w.p.Sink.(audit.Reader); ok {
		read = reader.Read
	}
	for after := uint64(0); ; after = kept[len(kept)-1].Sequence {
		page, err := read(ctx, name, after, audit.MaxRecords)
		if err != nil {
			w.fail(fmt.Sprintf("Read of %.20q after %d: the error %s", name, after, kit.ErrorText(err)), "the records, or none", unknown)
		}
		if len(page) == 0 {
			return kept
		}
		for i, r := range page {
			if r.Sequence <= after || i > 0 && r.Sequence <= page[i-1].Sequence {
				w.fail(fmt.Sprintf("Read of %.20q after %d: the sequence %d", name, after, r.Sequence), "ascending sequences, each once", ascending)
			}
		}
		kept = append(kept, page...)
	}
}

// check compares the sink's records of a stream with the model.
func (w *world) check(s *stream, sentence string) {
	got := w.read(s.name)
	for i, r := range got {
		switch {
		case i < len(s.kept):
			if why := different(r, s.kept[i]); why != "" {
				if r.Sequence == s.kept[i].Sequence {
					sentence = exactly
				}
				w.fail(fmt.Sprintf("Read of %.20q: record %d of %d has %s", s.name, i+1, len(got), why), "the record as it was written", sentence)
			}
		case i-len(s.kept) >= len(s.perhaps):
			w.fail(fmt.Sprintf("Read of %.20q: %d records, the last with the sequence %d", s.name, len(got), r.Sequence), fmt.Sprintf("%d records", len(s.kept)), sentence)
		default:
			if why := different(r, s.perhaps[i-len(s.kept)]); why != "" {
				w.fail(fmt.Sprintf("Read of %.20q: record %d has %s", s.name, i+1, why), "the first records of the batch that was not acknowledged, or none", onlyFirst)
			}
		}
	}
	if len(got) < len(s.kept) {
		w.fail(fmt.Sprintf("Read of %.20q: %s", s.name, numbers(got)), numbers(s.kept), sentence)
	}
}

// different describes the first field in which a record differs from what was written. It returns "" if there is none.
func different(got, want audit.Record) string {
	a, b := got, want
	if got.Time.UnixMilli() != want.Time.UnixMilli() || got.Time.IsZero() != want.Time.IsZero() {
		return fmt.Sprintf("the time %s instead of %s", got.Time, want.Time)
	}
	if !sameJSON(got.Arguments, want.Arguments) {
		return fmt.Sprintf("the arguments %.60s instead of %.60s", got.Arguments, want.Arguments)
	}
	a.Time, b.Time, a.Arguments, b.Arguments = time.Time{}, time.Time{}, nil, nil
	for i := range reflect.TypeFor[audit.Record]().NumField() {
		x, y := reflect.ValueOf(a).Field(i).Interface(), reflect.ValueOf(b).Field(i).Interface()
		if !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("%s %.60q instead of %.60q", reflect.TypeFor[audit.Record]().Field(i).Name, fmt.Sprint(x), fmt.Sprint(y))
		}
	}
	return ""
}

// sameJSON compares two JSON values. Numbers must have the same digits.
func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var x, y any
	for raw, into := range map[*json.RawMessage]*any{&a: &x, &b: &y} {
		d := json.NewDecoder(bytes.NewReader(*raw))
		if d.UseNumber(); d.Decode(into) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}

// fails writes a batch while the sink has a fault. The sink must not acknowledge the batch unless it kept all of its
// records.
func (w *world) fails(ctx context.Context, s *stream, records []audit.Record, deadline time.Duration, mayWork bool) {
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	w.note("Write to %.20q: %s", s.name, numbers(records))
	began := time.Now()
	err := w.p.Sink.Write(limited, s.name, records)
	took := time.Since(began)
	if err == nil && mayWork {
		s.keep(records)
		return
	}
	s.perhaps = records
	switch late := errors.Is(err, context.DeadlineExceeded) || limited.Err() != nil; {
	case took > deadline+w.t.Limit(patience):
		w.fail(fmt.Sprintf("after %s", took.Round(time.Millisecond)), fmt.Sprintf("an answer soon after the deadline of %s", deadline), soon)
	case err == nil:
		w.fail("OK", "UNAVAILABLE", noHope)
	case !errors.Is(err, plugins.ErrUnavailable) && !late:
		w.fail("the error "+kit.ErrorText(err), "UNAVAILABLE", notNow)
	}
}

// insist repeats a batch until it is acknowledged, as a server does.
func (w *world) insist(s *stream, records []audit.Record) {
	w.note("Write to %.20q again, until it is acknowledged: %s", s.name, numbers(records))
	for until := time.Now().Add(w.t.Start); ; {
		limited, cancel := context.WithTimeout(w.ctx, w.t.Limit(timeout)/3)
		err := w.p.Sink.Write(limited, s.name, records)
		cancel()
		if err == nil {
			s.keep(records)
			return
		}
		if time.Now().After(until) || w.ctx.Err() != nil {
			w.fail("the error "+kit.ErrorText(err), "OK, because nothing is wrong now", notNow)
		}
		_ = kit.Pause(w.ctx, 50*time.Millisecond)
	}
}

// Receiver accepts the records that a sink forwards by HTTP, and keeps each once. A request contains records in
// the JSON format of audit.Entry, as a list or one after another.
type Receiver struct {
	mu      sync.Mutex
	streams map[string][]audit.Record
	refuses int // the status of every response; 0 accepts
}

// refuse makes the receiver respond with a status, except at "/accepted", where a redirect leads.
func (r *Receiver) refuse(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = status
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	status := r.refuses
	r.mu.Unlock()
	if status != 0 && req.URL.Path != "/accepted" {
		w.Header().Set("Location", "/accepted")
		http.Error(w, "not now", status)
		return
	}
	var all []audit.Entry
	for d := json.NewDecoder(req.Body); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		several := make([]audit.Entry, 1)
		if err == nil && raw[0] == '[' {
			err = json.Unmarshal(raw, &several)
		} else if err == nil {
			err = json.Unmarshal(raw, &several[0])
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		all = append(all, several...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams == nil {
		r.streams = map[string][]audit.Record{}
	}
	for _, e := range all {
		if kept := r.streams[e.Stream]; len(kept) == 0 || kept[len(kept)-1].Sequence < e.Sequence {
			r.streams[e.Stream] = append(kept, e.Record)
		}
	}
}

// records returns the received records, like the Read method of audit.Reader.
func (r *Receiver) records(_ context.Context, stream string, after uint64, limit int) ([]audit.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.streams[stream]
	from, _ := slices.BinarySearchFunc(kept, after, func(have audit.Record, after uint64) int {
		if have.Sequence <= after {
			return -1
		}
		return 1
	})
	return slices.Clone(kept[from:min(len(kept), from+limit)]), nil
}
