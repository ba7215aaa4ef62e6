package postgres_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/postgres"
)

func TestInvalidPluginSettingsAreRefused(t *testing.T) {
	cases := []struct {
		name     string
		settings string
		paths    []string
	}{
		{"no url", `{}`, []string{"url"}},
		{"not a postgres url", `{"url": "postgres://u:secret-canary@host:port/db"}`, []string{"url"}},
		{"a url that names a file that does not exist", `{"url": "postgres://u:secret-canary@host/db?sslmode=verify-full&sslrootcert=/absent.pem"}`, []string{"url"}},
		{"a table that is more than a name", `{"url": "postgres://localhost/db", "table": "s; DROP TABLE s"}`, []string{"table"}},
		{"a purge without a pause", `{"url": "postgres://localhost/db", "purgeEvery": "0s"}`, []string{"purgeEvery"}},
		{"all at once", `{"url": 5, "tabel": "x", "timeout": "0s", "purgeEvery": "-1m"}`, []string{"purgeEvery", "tabel", "timeout", "url"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := postgres.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(c.settings)})
			wrong, ok := errors.AsType[*plugins.ConfigError](err)
			if !ok {
				t.Fatalf("got %v, want a ConfigError", err)
			}
			var paths []string
			for _, p := range wrong.Problems {
				paths = append(paths, p.Path)
			}
			slices.Sort(paths)
			if !slices.Equal(paths, c.paths) {
				t.Errorf("problems with %v, want %v: %v", paths, c.paths, err)
			}
			if strings.Contains(err.Error(), "secret-canary") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestValidPluginSettingsAreAccepted(t *testing.T) {
	for _, settings := range []string{
		`{"url": "postgres://user:password@localhost:5432/ropewalk?sslmode=require"}`,
		`{"url": "host=/run/postgresql dbname=ropewalk", "password": "p", "table": "mcp.sessions", "timeout": "1s", "purgeEvery": "10s"}`,
	} {
		if err := postgres.New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(settings)}); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
