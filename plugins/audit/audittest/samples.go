package audittest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/ropewalk/ropewalk/plugins/audit"
	"github.com/ropewalk/ropewalk/plugins/kit"
)

// newStream returns a stream of the check's own.
func newStream() string { return "kit-" + rand.Text() }

// record is one record of many.
func record(sequence uint64) audit.Record {
	return audit.Record{
		Sequence: sequence, Time: time.Date(2026, 11, 22, 18, 20, 21, 123e6, time.UTC).Add(time.Duration(sequence%1e6) * time.Millisecond),
		Actor: "usr_kit", Action: "tools.call", Target: "files__read", Outcome: "ok", Workspace: "ws_default", RequestID: "req_" + rand.Text(),
	}
}

// batch is the records from one sequence to another, both included.
func batch(from, to uint64) (all []audit.Record) {
	for n := from; n <= to; n++ {
		all = append(all, record(n))
	}
	return all
}

// texts are the fields of a record that hold any text.
func texts(r *audit.Record) map[string]*string {
	return map[string]*string{
		"actor": &r.Actor, "address": &r.Address, "workspace": &r.Workspace, "action": &r.Action,
		"target": &r.Target, "outcome": &r.Outcome, "request_id": &r.RequestID, "trace_id": &r.TraceID,
	}
}

// write writes a batch that must be kept.
func write(ctx context.Context, sink audit.Sink, stream string, records []audit.Record) error {
	if err := sink.Write(ctx, stream, records); err != nil {
		return kit.Failf("Write of %d records: %w", len(records), err)
	}
	return nil
}

// keeps writes records in one batch and compares what was kept.
func (s Subject) keeps(ctx context.Context, records ...audit.Record) error {
	if _, err := s.records(); err != nil {
		return err
	}
	stream := newStream()
	if err := write(ctx, s.Sink, stream, records); err != nil {
		return err
	}
	return s.has(ctx, stream, records)
}

// has compares what was kept of a stream.
func (s Subject) has(ctx context.Context, stream string, want []audit.Record) error {
	kept, err := s.kept(ctx, stream)
	if err != nil {
		return err
	}
	return same(kept, want)
}

func same(kept, want []audit.Record) error {
	for i := range want {
		switch {
		case i >= len(kept):
			return kit.Failf("of %d records that were written %d were kept; the one with the sequence %d is missing", len(want), len(kept), want[i].Sequence)
		case kept[i].Sequence != want[i].Sequence:
			return kit.Failf("record %d must have the sequence %d; it has %d", i, want[i].Sequence, kept[i].Sequence)
		}
		if err := sameRecord(kept[i], want[i]); err != nil {
			return err
		}
	}
	if len(kept) > len(want) {
		return kit.Failf("%d records were written once each, and %d were kept; the one with the sequence %d is too many", len(want), len(kept), kept[len(want)].Sequence)
	}
	return nil
}

func sameRecord(kept, want audit.Record) error {
	has := texts(&kept)
	for field, text := range texts(&want) {
		if *has[field] != *text {
			return kit.Failf("the %s of record %d was written as %s and came back as %s", field, want.Sequence, brief(*text), brief(*has[field]))
		}
	}
	if !kept.Time.Truncate(time.Millisecond).Equal(want.Time.Truncate(time.Millisecond)) {
		return kit.Failf("the time of record %d was written as %s and came back as %s", want.Sequence, want.Time.Format(time.RFC3339Nano), kept.Time.Format(time.RFC3339Nano))
	}
	if !sameJSON(kept.Arguments, want.Arguments) {
		return kit.Failf("the arguments_json of record %d were written as %s and came back as %s", want.Sequence, brief(string(want.Arguments)), brief(string(kept.Arguments)))
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	var values [2]any
	for i, raw := range []json.RawMessage{a, b} {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// brief quotes a value, cut where it is long.
func brief(text string) string {
	if len(text) <= 80 {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q... (%d bytes)", text[:80], len(text))
}
