package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

func TestTheErrorForAHomeThatCannotBeADirectorySaysWhy(t *testing.T) {
	dir := t.TempDir()
	file, link, toFile := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "toFile")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{link: filepath.Join(dir, "nothing"), toFile: file} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for home, what := range map[string]string{
		file:                             file + " is a file",
		toFile:                           toFile + " is a file",
		link:                             link + " is a dangling link",
		filepath.Join(file, "home"):      file + " is a file",
		filepath.Join(link, "a", "home"): link + " is a dangling link",
	} {
		want := "the home " + home + " cannot be created: " + what + "; choose another home with --home or ROPEWALK_HOME"
		for name, err := range map[string]error{"create": config.CreateHome(home), "check": config.CheckHome(home)} {
			if err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		}
	}
}

func TestAHomeIsCreatedIfPossible(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{dir, link, filepath.Join(link, "a", "home")} {
		if err := config.CheckHome(home); err != nil {
			t.Error(err)
		}
		if err := config.CreateHome(home); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".ropewalk-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := config.CreateHome("/proc/nohome"); err == nil || !strings.Contains(err.Error(), "write to /proc, or choose another home") {
		t.Errorf("got %v", err)
	}
}
