package plugins_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
)

// FuzzDecode checks that Decode never panics, and that encoding/json accepts everything that Decode accepts, with the
// same values.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, ``, `null`, `{"url": "x"}`, `{"url": "x", "url": "y"}`, `{"tls": {"caFile": "a"}, "url": ""}`,
		`{"url": "x", "roles": [{"name": "a", "rank": 1}], "labels": {"a": "b"}, "tags": []}`,
		`{"url": "x", "timeout": "1m", "token": "t", "port": 1e2, "ratio": -0}`, "{\"\xff\": 1}", `{"url":"x"}x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var strict, plain settings
		err := plugins.Config{JSON: raw}.Decode(&strict)
		if err != nil {
			if config, ok := errors.AsType[*plugins.ConfigError](err); !ok || len(config.Problems) == 0 {
				t.Fatalf("an error without a problem: %v", err)
			}
			return
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatalf("Decode accepted %q, encoding/json says %v", raw, err)
		}
		if strict.URL != plain.URL || strict.Token.Reveal() != plain.Token.Reveal() || strict.Port != plain.Port || len(strict.Roles) != len(plain.Roles) {
			t.Fatalf("Decode read %q as %+v, encoding/json as %+v", raw, strict, plain)
		}
	})
}
