package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARunningServersLogLevelsCanBeChangedAndItCanBeProfiled(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.run("ropewalk", "log", "level").exits(1, "no server is using the home "+s.home)
	s.up()
	s.run("ropewalk", "log", "level").exits(0, "default=info")
	s.run("ropewalk", "log", "level", "apps=debug", "default=warn").exits(0, "apps=debug", "default=warn")
	s.run("ropewalk", "log", "level", "apps=").exits(0, "default=warn")
	s.run("ropewalk", "log", "level", "apps=loud").exits(1, `"apps" must be trace, debug, info`, `not "loud"`)
	s.run("ropewalk", "log", "level", "apps").exits(2, "COMPONENT=LEVEL")
	s.run("ropewalk", "debug", "profile", "heap", "--out", "heap.pprof").exits(0, "Written to heap.pprof")
	s.run("ropewalk", "debug", "profile", "cpu", "--for", "1s").exits(0, "Written to cpu.pprof")
	s.run("ropewalk", "debug", "profile", "hat").exits(2, "goroutine")
	if _, err := os.Stat(filepath.Join(s.dir, "hat.pprof")); err == nil {
		t.Error("an invalid profile left a file")
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, "heap.pprof"))
	if err != nil || !strings.HasPrefix(string(raw), "\x1f\x8b") {
		t.Errorf("the profile has %d bytes, %v", len(raw), err)
	}
}
