package link

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// lines reads all of a stream as "text" or "over(length)".
func lines(t *testing.T, in io.Reader, limit int) []string {
	t.Helper()
	var all []string
	f := newFramer(in, limit)
	for {
		l, err := f.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.over > 0 {
			all = append(all, fmt.Sprintf("over(%d)", l.over))
		} else {
			all = append(all, string(l.data))
		}
	}
}

func TestLinesAreCutAndBounded(t *testing.T) {
	big := strings.Repeat("x", 200_000)
	for name, c := range map[string]struct {
		in    string
		limit int
		want  []string
	}{
		"line ends of both kinds":            {"a\nb\r\n\nc", 10, []string{"a", "b", "", "c"}},
		"a line of just the limit":           {"1234567890\nx\n", 10, []string{"1234567890", "x"}},
		"a line one over the limit":          {"12345678901\nx\n", 10, []string{"over(12)", "x"}},
		"an over-long line without an end":   {"12345678901", 10, []string{"over(11)"}},
		"a line longer than the buffer":      {big + "\nx", 200_000, []string{big, "x"}},
		"an over-long line over the buffer":  {big + "\nx", 199_999, []string{"over(200001)", "x"}},
		"two over-long lines and nothing":    {big + "\n" + big + "\n", 1000, []string{"over(200001)", "over(200001)"}},
		"a stream that ends with a line end": {"a\n", 10, []string{"a"}},
		"an empty stream":                    {"", 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, in := range map[string]io.Reader{"whole": strings.NewReader(c.in), "halves": iotest.HalfReader(strings.NewReader(c.in))} {
				if got := lines(t, in, c.limit); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: got %.100q, want %.100q", kind, got, c.want)
				}
			}
		})
	}
}

func FuzzFramer(f *testing.F) {
	f.Add([]byte("a\nbb\r\nccc"), 2)
	f.Add(bytes.Repeat([]byte("x\n"), 100), 1)
	f.Add([]byte("\n\n\r\n\r"), 5)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < 1 || limit > 1<<20 {
			return
		}
		parts := bytes.Split(data, []byte{'\n'})
		if len(parts[len(parts)-1]) == 0 {
			parts = parts[:len(parts)-1]
		}
		fr := newFramer(iotest.OneByteReader(bytes.NewReader(data)), limit)
		for i, part := range parts {
			l, err := fr.next()
			if err != nil {
				t.Fatalf("line %d: %v", i, err)
			}
			if over := len(part) > limit; over != (l.over > 0) {
				t.Fatalf("line %d of %d bytes, limit %d: over %d", i, len(part), limit, l.over)
			}
			if want := bytes.TrimSuffix(part, []byte{'\r'}); l.over == 0 && !bytes.Equal(l.data, want) {
				t.Fatalf("line %d is %q, want %q", i, l.data, want)
			}
		}
		if l, err := fr.next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last line: %q, %v", l.data, err)
		}
	})
}

func TestTheCallThatAnOverLongLineAnswersIsFound(t *testing.T) {
	fill := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		line string
		id   int64
	}{
		"id first":                          {`{"jsonrpc":"2.0","id":2000000,"result":{"t":"` + fill + `"}}`, 2000000},
		"id last":                           {`{"result":{"t":"` + fill + `"},"jsonrpc":"2.0","id":2000000}`, 2000000},
		"id before the version":             {`{"result":{"t":"` + fill + `"},"id": 2000000, "jsonrpc" : "2.0" }`, 2000000},
		"an id inside the result only":      {`{"jsonrpc":"2.0","result":{"t":"` + fill + `","id":2000000}}`, 0},
		"an id of the SDK":                  {`{"jsonrpc":"2.0","id":3,"result":{"t":"` + fill + `"}}`, 0},
		"a text that only looks like an id": {`{"jsonrpc":"2.0","result":"` + fill + `\"id\":2000000}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			id, found := salvage([]byte(c.line[:keepEnd]), []byte(c.line[len(c.line)-keepEnd:]))
			if found != (c.id != 0) || found && id != c.id {
				t.Errorf("found %d (%v), want %d", id, found, c.id)
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n: comment\n\nid: 4\nretry: 10\ndata: a\ndata: b\n\n"))
	f.Add([]byte("\uFEFFdata\n\ndata:x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 64
		var junk tally
		junk.log = quiet()
		out, err := io.ReadAll(&filter{in: newEvents(bytes.NewReader(data), limit), source: io.NopCloser(nil), junk: &junk, limit: limit, id: func() string { return "null" }})
		if err != nil {
			t.Fatal(err)
		}
		in := newEvents(bytes.NewReader(out), limit)
		for {
			e, err := in.next()
			if err != nil {
				return
			}
			if e.over {
				t.Fatalf("%q let an over-long event through", data)
			}
			if !e.message() || len(e.data) == 0 {
				continue
			}
			if _, err := scanEnvelope(e.data); err != nil {
				t.Fatalf("%q let %q through: %v", data, e.data, err)
			}
		}
	})
}
