package redis

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

func TestInvalidPluginSettingsAreRefused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "absent.pem")
	cases := []struct {
		name     string
		settings string
		paths    []string // paths of all problems, in any order
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
		{"a ca file that does not exist", `{"url": "rediss://localhost", "tls": {"caFile": "` + missing + `"}}`, []string{"tls"}},
		{"a key without its certificate", `{"url": "rediss://localhost", "tls": {"keyFile": "a.pem"}}`, []string{"tls.certFile"}},
		{"no time at all", `{"url": "redis://localhost", "timeout": "0s"}`, []string{"timeout"}},
		{"a time before now", `{"url": "redis://localhost", "timeout": "-1s"}`, []string{"timeout"}},
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

func TestValidPluginSettingsAreAccepted(t *testing.T) {
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

func TestTheDefaultsAreTheDocumentedOnes(t *testing.T) { // docs/adapters.md
	if c := defaults(); c.KeyPrefix != "ropewalk:session:" || c.Timeout != plugins.Duration(2*time.Second) {
		t.Errorf("got %+v", c)
	}
}

func TestConnectionsRequireAtLeastTLS12(t *testing.T) {
	config := &tls.Config{} //nolint:gosec // what apply sets is the test
	if err := (TLS{}).apply(config); err != nil || config.MinVersion != tls.VersionTLS12 {
		t.Errorf("got version %x, %v", config.MinVersion, err)
	}
}

func TestAnUnusableCertificateFileSaysWhy(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (TLS{CAFile: empty}).apply(&tls.Config{}); err == nil || !strings.Contains(err.Error(), empty+" contains no PEM certificate") { //nolint:gosec // as above
		t.Errorf("a file without a certificate: %v", err)
	}
	if err := (TLS{CAFile: filepath.Join(dir, "absent.pem")}).apply(&tls.Config{}); !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // as above
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := (TLS{CertFile: empty, KeyFile: empty}).apply(&tls.Config{}); err == nil { //nolint:gosec // as above
		t.Error("a file without a client certificate is accepted")
	}
}
