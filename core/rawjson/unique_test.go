package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestADuplicateNameIsFoundAtAnyDepth(t *testing.T) {
	many := &strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(many, `"k%d":%d,`, i, i)
	}
	for text, want := range map[string]string{
		`{"a":1,"b":{"a":[{"c":1},{"c":2}]}}`:      "",
		`{"a":1,"a":2}`:                            "a is given more than once",
		`{"a":1,"\u0061":2}`:                       "a is given more than once",
		`{"a":{"b":[1,{"c":1,"d":[],"c":2}]}}`:     "a.b[].c is given more than once",
		`[{"a":{"x":1,"x":1}}]`:                    "[].a.x is given more than once",
		`{` + many.String() + `"k57":0}`:           "k57 is given more than once",
		`{` + many.String() + `"k":{"x":1,"x":2}}`: "k.x is given more than once",
		`{"a":1} x`: ErrSyntax.Error(),
		`{"a":}`:    ErrSyntax.Error(),
		strings.Repeat("[", 101) + strings.Repeat("]", 101): ErrDepth.Error(),
	} {
		got := ""
		if err := CheckUnique([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60s: got %q, want %q", text, got, want)
		}
	}
}

func TestCheckingForDuplicatesIsLinearInMemory(t *testing.T) {
	key := strings.Repeat("k", 190)
	deep := strings.Repeat(`{"`+key+`":`, MaxDepth-1) + "1" + strings.Repeat("}", MaxDepth-1)
	wide := &strings.Builder{}
	for i := 0; wide.Len() < 1<<20; i++ {
		fmt.Fprintf(wide, `,"%x":1`, i)
	}
	for name, text := range map[string]string{
		"many deep objects": "[" + strings.Repeat(deep+",", 50) + "1]",
		"one wide object":   "{" + wide.String()[1:] + "}",
		"5,000 levels":      strings.Repeat(`{"`+key+`":`, 5000) + "1" + strings.Repeat("}", 5000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := CheckUnique([]byte(text))
		runtime.ReadMemStats(&after)
		if used := int(after.TotalAlloc - before.TotalAlloc); used > 16*len(text) || err != nil && !errors.Is(err, ErrDepth) {
			t.Errorf("%s: %d bytes for a text of %d (%v)", name, used, len(text), err)
		}
	}
}

func FuzzCheckUnique(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `[{"a":{"\u0061":1}}]`, `{"a":1,}`, `1`, `{"":1,"":2}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := CheckUnique(data)
		if errors.Is(err, ErrDepth) || errors.Is(err, ErrDuplicate) {
			return
		}
		if valid := json.Valid(data); valid != (err == nil) {
			t.Fatalf("%q: valid is %v, but %v", data, valid, err)
		}
	})
}
