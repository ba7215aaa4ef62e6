package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `-0.5e+10`, `01`, `1.`, `"\ud800"`, `"\u12G4"`, `{"a":[{"b":{}},[],"c"]}`, `{"a":1,}`, `[1,]`, `{,}`, `tru`,
		`"` + "\x1f" + `"`, `"unfinished`, `{"a" : 1 , "b":	2}`, `"12345678\"1234567890"`, `]`, `{"a"}`, `[1 2]`, "\xff", `"` + "\xff" + `"`, `1e`, `--1`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := Scanner{Data: data}
		s.Space()
		err := s.Value()
		if errors.Is(err, ErrDepth) {
			return
		}
		if got, want := err == nil && s.End(), json.Valid(data); got != want || got != Valid(data) {
			t.Fatalf("%q: valid %v, encoding/json says %v", data, got, want)
		}
		readAll(slices.Clip(data))
	})
}

// readAll reads all values in a buffer that has no spare capacity.
func readAll(data []byte) {
	s := Scanner{Data: data}
	s.Space()
	switch {
	case s.Begins('{'):
		_ = s.Object(func(_, value []byte) error { readAll(value); return nil })
	case s.Begins('['):
		_ = s.Array(func(value []byte) error { readAll(value); return nil })
	default:
		_, _ = s.Take()
	}
}

func TestTruncatedInputIsNotReadPastItsEnd(t *testing.T) {
	const text = `{"a\u0041":"b\"\\\n","c":[true,false,null,-1.5e+7,"\ud83d\ude00"],"d":{}}`
	for end := range len(text) {
		part := slices.Clip([]byte(text[:end]))
		if Valid(part) {
			t.Errorf("%s is valid", part)
		}
		readAll(part)
	}
}

func TestNestingIsBounded(t *testing.T) {
	for _, kind := range []struct{ open, inner, end string }{{"[", "", "]"}, {`{"a":`, "1", "}"}} {
		for depth, want := range map[int]bool{MaxDepth: true, MaxDepth + 1: false, 20 * MaxDepth: false} {
			text := strings.Repeat(kind.open, depth) + kind.inner + strings.Repeat(kind.end, depth)
			if Valid([]byte(text)) != want {
				t.Errorf("%d levels of %s: valid is not %v", depth, kind.open, want)
			}
		}
	}
}

func TestAValueEndsWhereItsTextEnds(t *testing.T) {
	const text = `{"a" : [1,{"b":"]}\\\""}] , "c":-1.5e3,"d":null}`
	for from, want := range map[int]string{
		0: text, 1: `"a"`, strings.Index(text, "["): `[1,{"b":"]}\\\""}]`, strings.Index(text, "-1"): `-1.5e3`, strings.Index(text, "null"): `null`,
	} {
		s := Scanner{Data: []byte(text), pos: from}
		if err := s.Value(); err != nil || text[from:s.pos] != want {
			t.Errorf("from %d: %q, %v, want %q", from, text[from:s.pos], err, want)
		}
	}
}

func TestMembersAndElementsAreReturnedAsWritten(t *testing.T) {
	var got []string
	s := Scanner{Data: []byte(`{ "a" : 1.50, "\u0062":[ "x" ,{}] }`)}
	err := s.Object(func(key, value []byte) error {
		got = append(got, string(Name(key))+"="+string(value))
		return nil
	})
	if want := `a=1.50|b=[ "x" ,{}]`; err != nil || strings.Join(got, "|") != want || !s.End() {
		t.Errorf("%v %q, want %q", err, got, want)
	}
	got, s = nil, Scanner{Data: []byte(`[1, "two" ,[3]]`)}
	err = s.Array(func(value []byte) error {
		got = append(got, string(value))
		return nil
	})
	if want := `1|"two"|[3]`; err != nil || strings.Join(got, "|") != want || !s.End() {
		t.Errorf("%v %q, want %q", err, got, want)
	}
}

func TestAnErrorFromTheCallbackEndsTheScan(t *testing.T) {
	stop, seen := errors.New("enough"), 0
	s := Scanner{Data: []byte(`{"a":1,"b":2}`)}
	if err := s.Object(func(_, _ []byte) error { seen++; return stop }); !errors.Is(err, stop) || seen != 1 {
		t.Errorf("%v after %d members", err, seen)
	}
}

func BenchmarkValid(b *testing.B) {
	text := []byte(`{"a":"` + strings.Repeat("x", 64<<10) + `","b":[` + strings.TrimSuffix(strings.Repeat(`{"k":1.5,"v":"short"},`, 400), ",") + `]}`)
	for name, valid := range map[string]func([]byte) bool{"ours": Valid, "encoding/json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !valid(text) || bytes.IndexByte(text, 0) >= 0 {
					b.Fatal("not valid")
				}
			}
		})
	}
}
