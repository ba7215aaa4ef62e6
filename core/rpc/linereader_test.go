package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// lines reads a whole stream, each line as "text" or "over(length)".
func lines(t *testing.T, in io.Reader, limit int) []string {
	t.Helper()
	var all []string
	f := NewLineReader(in, limit)
	for {
		l, err := f.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Over > 0 {
			all = append(all, fmt.Sprintf("over(%d)", l.Over))
		} else {
			all = append(all, string(l.Data))
		}
	}
}

func TestLinesAreSplitAndBounded(t *testing.T) {
	big := strings.Repeat("x", 200_000)
	for name, c := range map[string]struct {
		in    string
		limit int
		want  []string
	}{
		"both kinds of line ending":                {"a\nb\r\n\nc", 10, []string{"a", "b", "", "c"}},
		"a line exactly at the limit":              {"1234567890\nx\n", 10, []string{"1234567890", "x"}},
		"a line one over the limit":                {"12345678901\nx\n", 10, []string{"over(12)", "x"}},
		"an over-long line without a line ending":  {"12345678901", 10, []string{"over(11)"}},
		"a line longer than the buffer":            {big + "\nx", 200_000, []string{big, "x"}},
		"an over-long line longer than the buffer": {big + "\nx", 199_999, []string{"over(200001)", "x"}},
		"two over-long lines and nothing else":     {big + "\n" + big + "\n", 1000, []string{"over(200001)", "over(200001)"}},
		"a stream that ends with a line ending":    {"a\n", 10, []string{"a"}},
		"an empty stream":                          {"", 10, nil},
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

// A line collected in several chunks arrives whole, and so do both ends of a line that is too long.
func TestLinesOfManyChunksAreWhole(t *testing.T) {
	pattern := func(n int) []byte {
		data := make([]byte, n)
		for i := range data {
			data[i] = 'a' + byte(i*7/5%23)
		}
		return data
	}
	for _, n := range []int{readBuffer - 1, readBuffer, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 5, KeptBuffer + chunkSize + 1} {
		line := pattern(n)
		r := NewLineReader(bytes.NewReader(slices.Concat(line, []byte("\nshort\n"), line, []byte("\n"))), n)
		for _, want := range [][]byte{line, []byte("short"), line} {
			if l, err := r.Next(); err != nil || !bytes.Equal(l.Data, want) {
				t.Errorf("a line of %d bytes: %d bytes, %v", n, len(l.Data), err)
			}
		}
		over := NewLineReader(bytes.NewReader(append(pattern(n), '\n')), n-1)
		l, err := over.Next()
		if err != nil || l.Over != int64(n+1) || !bytes.HasPrefix(line, l.Data) || len(l.Data) < KeptEnd || !bytes.HasSuffix(line, l.Tail) || len(l.Tail) < KeptEnd-1 {
			t.Errorf("a line of %d bytes over the limit: over %d, ends of %d and %d bytes, %v", n, l.Over, len(l.Data), len(l.Tail), err)
		}
	}
}

func FuzzLineReader(f *testing.F) {
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
		r := NewLineReader(iotest.OneByteReader(bytes.NewReader(data)), limit)
		for i, part := range parts {
			l, err := r.Next()
			if err != nil {
				t.Fatalf("line %d: %v", i, err)
			}
			if over := len(part) > limit; over != (l.Over > 0) {
				t.Fatalf("line %d of %d bytes, limit %d: over %d", i, len(part), limit, l.Over)
			}
			if want := bytes.TrimSuffix(part, []byte{'\r'}); l.Over == 0 && !bytes.Equal(l.Data, want) {
				t.Fatalf("line %d is %q, want %q", i, l.Data, want)
			}
		}
		if l, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last line: %q, %v", l.Data, err)
		}
	})
}
