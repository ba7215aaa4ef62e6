package seal

import (
	"errors"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// A key never opens a record that was written with another key, and errors never contain a key.
func FuzzOpen(f *testing.F) {
	text := core.Secret(strings.Repeat("00", keyBytes))
	k, err := Parse(text)
	if err != nil {
		f.Fatal(err)
	}
	record := k.Seal([]byte(`{"env":{"A":"b"}}`), "place")
	for _, seed := range []string{record, "{}", prefix, prefix + k.ID(), prefix + k.ID() + ":", prefix + "00000000:AAAA", strings.ToUpper(record)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stored string) {
		plain, err := k.Open(stored, "another place")
		if err == nil && strings.HasPrefix(stored, prefix) {
			t.Fatalf("%q is read as %q", stored, plain)
		}
		if err == nil && string(plain) != stored {
			t.Fatalf("%q in plain is read as %q", stored, plain)
		}
		if _, unknown := errors.AsType[*UnknownKeyError](err); unknown && strings.HasPrefix(stored, prefix+k.ID()+":") {
			t.Fatalf("the key of %q is not found", stored)
		}
		if keys, err := Parse(core.Secret(stored)); err == nil && keys.ID() == "" {
			t.Fatalf("%q are keys without an id", stored)
		}
	})
}
