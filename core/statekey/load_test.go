package statekey

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

func TestKeysComeFromAFileTheConfigurationOrACommand(t *testing.T) {
	key := seal.NewKey()
	want, err := seal.Parse(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := WriteFile(file, want); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	env := config.Environment{"PATH": os.Getenv("PATH"), "PASSED": key.Reveal()}
	for name, from := range map[string]config.StorageKeys{
		"file": {File: file}, "text": {Text: key}, "command": {Command: []string{"sh", "-c", `echo "$PASSED"`}},
	} {
		got, err := Load(t.Context(), &config.Config{Environment: env, Storage: config.Storage{Keys: from}})
		if err != nil || got.ID() != want.ID() {
			t.Errorf("%s: %v, %v", name, got.ID(), err)
		}
	}
	if none, err := Load(t.Context(), &config.Config{}); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

func TestAKeyErrorNamesTheSettingButNeverShowsTheKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := config.Environment{"PATH": os.Getenv("PATH")}
	for want, from := range map[string]config.StorageKeys{
		"storage.keyFile: " + dir + "/none does not exist; `ropewalk encryption rotate` creates it": {File: dir + "/none"},
		"is writable by other users (mode 622); run chmod 600":                                      {File: write("loose", seal.NewKey().Reveal(), 0o622)},
		"storage.keyFile: " + dir + "/bad: key 1 is not 32 bytes":                                   {File: write("bad", "canary", 0o600)},
		"storage.key (ROPEWALK_STORAGE_KEY): key 1 is not 32 bytes":                                 {Text: core.Secret("canary")},
		"the output of storage.keyCommand: there is no key":                                         {Command: []string{"true"}},
		"storage.keyCommand: sh exited with status 3":                                               {Command: []string{"sh", "-c", "echo canary; exit 3"}},
		"storage.keyCommand: no-such-program is not in any directory of PATH":                       {Command: []string{"no-such-program"}},
		"printed more than 65536 bytes":                                                             {Command: []string{"sh", "-c", "while :; do echo canary; done"}},
	} {
		_, err := Load(t.Context(), &config.Config{Environment: env, Storage: config.Storage{Keys: from}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTheFirstKeyIsCreatedNextToTheHomeOrInADirectoryThere(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"home.state-key":     func(string) error { return nil },
		"home.state-key/key": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		dir := t.TempDir()
		home := filepath.Join(dir, "home")
		if err := prepare(home + ".state-key"); err != nil {
			t.Fatal(err)
		}
		if from := SourceOf(&config.Config{Home: home}); from.Set() {
			t.Errorf("%s: there should be no source before there is a key: %+v", name, from)
		}
		made, path, err := Create(home)
		if err != nil || path != filepath.Join(dir, name) {
			t.Fatalf("%s: %s, %v", name, path, err)
		}
		if found, err := Load(t.Context(), &config.Config{Home: home}); err != nil || found.ID() != made.ID() {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

func TestAKeyFileThatCannotBeCreatedIsNamedWithTheCommandToRun(t *testing.T) {
	_, _, err := Create("/proc/self/none/home")
	if want := "the key file /proc/self/none/home.state-key cannot be created: no such file or directory; put the output of `ropewalk encryption new-key` in the variable ROPEWALK_STORAGE_KEY"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAKeyFileKeepsItsOwnerWhenRootReplacesIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	file := filepath.Join(t.TempDir(), "keys")
	keys, err := seal.Parse(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(WriteFile(file, keys), os.Chown(file, 65534, 65533), WriteFile(file, keys))
	info, statErr := os.Stat(file)
	if owner, ok := info.Sys().(*syscall.Stat_t); err != nil || statErr != nil || !ok || owner.Uid != 65534 || owner.Gid != 65533 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, %+v", err, statErr, info.Sys())
	}
}
