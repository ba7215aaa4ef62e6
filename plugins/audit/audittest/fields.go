package audittest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/audit"
)

func comeBack(ctx context.Context, s Subject) error {
	return s.keeps(ctx, batch(1, 50)...)
}

// full is a record with another value in each field.
func full(sequence uint64, value func(field string) string) audit.Record {
	r := record(sequence)
	for field, text := range texts(&r) {
		*text = value(field)
	}
	return r
}

func fieldsComeBack(ctx context.Context, s Subject) error {
	return s.keeps(ctx, full(1, func(field string) string { return "the " + field }), full(2, func(field string) string { return "another " + field }))
}

func longValuesComeBack(ctx context.Context, s Subject) error {
	var all []audit.Record
	for i, length := range []int{127, 255, 256, 1 << 10, 4<<10 + 1, 64<<10 + 1, 256<<10 + 1} {
		all = append(all, full(uint64(i+1), func(field string) string { return field + strings.Repeat("x", length) + "." }))
	}
	return s.keeps(ctx, all...)
}

func textComesBack(ctx context.Context, s Subject) error {
	var all []audit.Record
	for i, text := range []string{
		" begins and ends with spaces ", "2001:DB8::0001", "::ffff:192.0.2.1", "[::1]:8080", "192.0.2.1:443", "a\x00b", "two\nlines\r\n", "tab\tand \"quotes\" and 'quotes' \\ back", "<script>&amp;</script>", "50% $1 {{.}} ${env:HOME}",
		"Ä is not A\u0308", "\u202eright to left", "日本語 🪢 \U0010FFFF", "line\u2028and\u2029paragraph", "\u007f\u0080\ufeff\ufffd", "null", "0123", "UPPER lower", "a;b,c|d\x1fe",
	} {
		all = append(all, full(uint64(i+1), func(string) string { return text }))
	}
	return s.keeps(ctx, all...)
}

func emptyFieldsStay(ctx context.Context, s Subject) error {
	bare := audit.Record{Sequence: 2, Time: record(2).Time}
	return s.keeps(ctx, full(1, func(field string) string { return field }), bare, full(3, func(field string) string { return field }))
}

func timesComeBack(ctx context.Context, s Subject) error {
	var all []audit.Record
	for i, at := range []string{"2026-11-22T18:20:21.001Z", "2026-11-22T18:20:21.999Z", "2026-02-28T23:59:59.500Z", "2026-03-29T02:30:00.123+02:00", "2000-01-01T00:00:00Z", "1999-12-31T23:59:59.007Z", "1969-12-31T23:59:58.999Z", "1970-01-01T00:00:00Z", "2107-02-07T06:28:16.001Z", "0001-01-01T00:00:00Z", "2050-07-01T12:00:00.250Z"} {
		r := record(uint64(i + 1))
		r.Time, _ = time.Parse(time.RFC3339Nano, at)
		all = append(all, r)
	}
	return s.keeps(ctx, all...)
}

func argumentsComeBack(ctx context.Context, s Subject) error {
	var all []audit.Record
	for i, raw := range []string{
		`{"path":"/tmp/a","deep":{"list":[1,2,[3]],"empty":{},"nothing":null}}`, `{"b":1,"a":2}`, `[]`, `"text"`, `null`, `true`, `0`,
		`{"whole":12345678901234567890,"fraction":0.1,"negative":-7}`, `{"<&>":"\u0000 \ud83e\udea2"}`, `""`, `{}`, `false`, `{"":1,"Name":2,"name":3,"list":[3,1,2,1],"none":null}`,
		`{"large":1e400,"small":-1e-400,"exact":0.1234567890123456789012345}`, strings.Repeat(`[{"deep":`, 200) + "0" + strings.Repeat("}]", 200), "{\n  \"spaced\" : [ 1 , 2 ]\n}",
	} {
		r := record(uint64(i + 1))
		r.Arguments = json.RawMessage(raw)
		all = append(all, r)
	}
	return s.keeps(ctx, all...)
}

func thousandRecords(ctx context.Context, s Subject) error {
	return s.keeps(ctx, batch(1, audit.MaxRecords)...)
}

func largeArguments(ctx context.Context, s Subject) error {
	r := record(1)
	r.Arguments = json.RawMessage(`{"text":"` + strings.Repeat("0123456789abcdef", (audit.MaxArguments-64)/16) + `"}`)
	return s.keeps(ctx, r, record(2))
}

func equalRecords(ctx context.Context, s Subject) error {
	var all []audit.Record
	for n := range uint64(10) {
		r := record(1)
		r.RequestID, r.Sequence = "req_1", n+1
		all = append(all, r)
	}
	return s.keeps(ctx, all...)
}

func oldRecordsStay(ctx context.Context, s Subject) error {
	if _, err := s.records(); err != nil {
		return err
	}
	stream, want := newStream(), batch(1, 12*500)
	for i := 0; i < len(want); i += 500 {
		if err := write(ctx, s.Sink, stream, want[i:i+500]); err != nil {
			return err
		}
	}
	return s.has(ctx, stream, want)
}

func largeSequences(ctx context.Context, s Subject) error {
	return s.keeps(ctx, record(7), record(1<<31), record(1<<32+1), record(1<<53+1), record(1<<53+2), record(1<<62+1))
}
