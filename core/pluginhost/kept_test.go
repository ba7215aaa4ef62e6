package pluginhost_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
)

func TestAPluginWhoseFileWasReplacedIsRestartedFromTheAcceptedFile(t *testing.T) {
	var home string
	h := newHost(t, func(o *pluginhost.Options) { home = o.Home })
	dir := filepath.Join(home, "plugins")
	file, _ := thirdParty(t, dir)
	s := openStore(t, h, config.Plugin{Adapter: "third"})
	for _, broken := range []string{"#!/bin/sh\nexit 1\n", ""} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if broken != "" {
			if err := os.WriteFile(file, []byte(broken), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := (pluginhost.LockFile{Home: home}).Accept("sessionstore-third"); err != nil {
				t.Fatal(err)
			}
		}
		kill(t, h, syscall.SIGKILL)
		if err := roundTrip(t.Context(), s, "a"); err != nil {
			t.Errorf("after the plugin was killed: %v", err)
		}
	}
}

func TestOnlyCopiesOfRunningPluginsAreKept(t *testing.T) {
	var home string
	h := newHost(t, func(o *pluginhost.Options) { home = o.Home })
	dir := filepath.Join(home, "plugins")
	file, _ := thirdParty(t, dir)
	for range 3 {
		openStore(t, h, config.Plugin{Adapter: "third"}).Close(t.Context())
		changeOneByte(t, file)
		if _, err := (pluginhost.LockFile{Home: home}).Accept("sessionstore-third"); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(dir, ".sessionstore-third.*"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept files: %v, %v", kept, err)
	}
}

func TestAChangedPluginIsRefusedEvenWhenTheLockFileWasRemoved(t *testing.T) {
	var home string
	h := newHost(t, func(o *pluginhost.Options) { home = o.Home })
	file, _ := thirdParty(t, filepath.Join(home, "plugins"))
	openStore(t, h, config.Plugin{Adapter: "third"}).Close(t.Context())
	if err := os.Remove(filepath.Join(home, "plugins.lock")); err != nil {
		t.Fatal(err)
	}
	changeOneByte(t, file)
	_, err := h.SessionStore(t.Context(), config.Plugin{Adapter: "third"})
	says(t, err, "has changed since it was accepted", "ropewalk plugin verify --accept")
}

func TestChecksumsFromOlderServersAreMovedToTheLockFile(t *testing.T) {
	home := t.TempDir()
	file, sum := thirdParty(t, filepath.Join(home, "plugins"))
	old := filepath.Join(home, "plugins", "SHA256SUMS")
	if err := os.WriteFile(old, []byte(sum+"  sessionstore-third\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock := pluginhost.LockFile{Home: home}
	if all, err := lock.All(); err != nil || len(all) != 1 || all[0].Match() != pluginhost.MatchOK {
		t.Errorf("got %+v, %v", all, err)
	}
	changeOneByte(t, file)
	if _, err := lock.Accept("sessionstore-third"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("SHA256SUMS is still there: %v", err)
	}
	if all, err := lock.All(); err != nil || len(all) != 1 || all[0].Match() != pluginhost.MatchOK {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestAPluginThatOthersMayReplaceIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, file string) error
		says   string
	}{
		"a world-writable file":      {func(_ *testing.T, f string) error { return os.Chmod(f, 0o757) }, "chmod go-w"},
		"a group-writable file":      {func(_ *testing.T, f string) error { return os.Chmod(f, 0o775) }, "chmod go-w"},
		"a world-writable directory": {func(_ *testing.T, f string) error { return os.Chmod(filepath.Dir(f), 0o777) }, "chmod go-w"},
		"a symbolic link":            {linked, "symbolic link"},
		"another user's file":        {ofNobody, "must belong to the server's user"},
		"another user's directory":   {func(t *testing.T, f string) error { return ofNobody(t, filepath.Dir(f)) }, "must belong to the server's user"},
	} {
		t.Run(name, func(t *testing.T) {
			file, sum := thirdParty(t, t.TempDir())
			if err := c.change(t, file); err != nil {
				t.Fatal(err)
			}
			_, err := newHost(t).SessionStore(t.Context(), config.Plugin{Adapter: "third", Path: file, SHA256: sum})
			says(t, err, "sessionstore plugin", c.says)
			if err := newHost(t).Check(t.Context(), plugins.KindSessionStore, config.Plugin{Adapter: "third", Path: file, SHA256: sum}); err == nil {
				t.Error("it passes a check")
			}
		})
	}
}

func linked(t *testing.T, file string) error {
	t.Helper()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(file, elsewhere); err != nil {
		return err
	}
	return os.Symlink(elsewhere, file)
}

func ofNobody(t *testing.T, path string) error {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	return os.Chown(path, 65534, 65534)
}
