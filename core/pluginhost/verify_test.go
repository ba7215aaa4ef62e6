package pluginhost_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/ropewalk/ropewalk/core/pluginhost"
)

func TestEveryPluginInADirectoryIsComparedWithItsRecord(t *testing.T) {
	home := t.TempDir()
	sums := pluginhost.LockFile{Home: home}
	if err := os.Mkdir(sums.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := (pluginhost.LockFile{Home: filepath.Join(home, "none")}).All(); err != nil || len(all) != 0 {
		t.Errorf("a folder that does not exist: got %v, %v", all, err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(sums.Dir(), name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"auth-same", "auth-changed", "sessionstore-gone"} {
		write(name, "first")
		if _, err := sums.Accept(name); err != nil {
			t.Fatal(err)
		}
	}
	write("auth-changed", "second")
	write("registry-new", "first")
	write("notes.txt", "no plugin")
	if err := os.Mkdir(filepath.Join(sums.Dir(), "auth-folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(sums.Dir(), "sessionstore-gone")); err != nil {
		t.Fatal(err)
	}
	matches(t, sums, map[string]pluginhost.Match{
		"auth-same": "ok", "auth-changed": "changed", "registry-new": "unknown", "sessionstore-gone": "missing",
	})
	if _, err := sums.Accept("auth-changed"); err != nil {
		t.Fatal(err)
	}
	if err := sums.Forget("sessionstore-gone"); err != nil {
		t.Fatal(err)
	}
	matches(t, sums, map[string]pluginhost.Match{"auth-same": "ok", "auth-changed": "ok", "registry-new": "unknown"})
}

func matches(t *testing.T, sums pluginhost.LockFile, want map[string]pluginhost.Match) {
	t.Helper()
	all, err := sums.All()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]pluginhost.Match{}
	for _, s := range all {
		got[filepath.Base(s.Path)] = s.Match()
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
