package redis

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestSettingsThatAreWrong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "absent.pem")
	cases := []struct {
		name     string
		settings string
		paths    []string // of all problems, in any order
	}{
		{"no url", `{}`, []string{"url"}},
		{"not a redis url", `{"url": "http://localhost"}`, []string{"url"}},
		{"an unreadable url", `{"url": "redis://user:secret-canary@ho st"}`, []string{"url"}},
		{"a database that is not a number", `{"url": "redis://:secret-canary@localhost/abc"}`, []string{"url"}},
		{"a parameter of the library that is a setting here", `{"url": "redis://:secret-canary@localhost?read_timeout=1s"}`, []string{"url"}},
		{"a parameter that reads from replicas", `{"url": "redis+cluster://localhost?read_only=true"}`, []string{"url"}},
		{"an unknown topology", `{"url": "redis+ring://localhost"}`, []string{"url"}},
		{"a cluster with a database", `{"url": "redis+cluster://localhost/1"}`, []string{"url"}},
		{"sentinels without the name of the master", `{"url": "redis+sentinel://localhost:26379"}`, []string{"url"}},
		{"tls without rediss", `{"url": "redis://localhost", "tls": {"serverName": "redis"}}`, []string{"tls"}},
		{"a certificate without its key", `{"url": "rediss://localhost", "tls": {"certFile": "a.pem"}}`, []string{"tls.certFile"}},
		{"a ca file that is not there", `{"url": "rediss://localhost", "tls": {"caFile": "` + missing + `"}}`, []string{"tls"}},
		{"an unknown name and a bad duration and an empty prefix, all at once",
			`{"url": "redis://localhost", "keyprefix": "x:", "timeout": "soon", "keyPrefix": ""}`, []string{"keyprefix", "timeout", "keyPrefix"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(c.settings)})
			config, ok := errors.AsType[*plugins.ConfigError](err)
			if !ok {
				t.Fatalf("got %v, want a ConfigError", err)
			}
			var paths []string
			for _, p := range config.Problems {
				paths = append(paths, p.Path)
			}
			slices.Sort(paths)
			slices.Sort(c.paths)
			if !slices.Equal(paths, c.paths) {
				t.Errorf("problems with %v, want %v: %v", paths, c.paths, err)
			}
			if strings.Contains(err.Error(), "secret-canary") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

func TestSettingsThatAreRight(t *testing.T) {
	for _, settings := range []string{
		`{"url": "redis://localhost"}`,
		`{"url": "rediss://user:password@redis.example:6380/3?pool_size=4"}`,
		`{"url": "unix:///run/redis.sock?db=1"}`,
		`{"url": "redis+cluster://a:6379?addr=b:6379&addr=c:6379"}`,
		`{"url": "rediss+sentinel://sentinel:password@a:26379/0?master_name=main&addr=b:26379"}`,
		`{"url": "rediss://localhost", "username": "u", "password": "p", "keyPrefix": "x:", "timeout": "1s", "tls": {"serverName": "redis"}}`,
	} {
		if err := New().Validate(t.Context(), plugins.Config{JSON: json.RawMessage(settings)}); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
