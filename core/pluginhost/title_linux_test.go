package pluginhost_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
)

func TestTheProcessListShowsThePluginsName(t *testing.T) {
	third, sum := thirdParty(t, t.TempDir())
	for _, c := range []struct {
		p                config.Plugin
		arguments, short string
	}{
		{config.Plugin{Adapter: "child"}, "ropewalk-plugin sessionstore-child", "sessionstore-ch"},
		{config.Plugin{Adapter: "mine", Path: third, SHA256: sum}, "ropewalk-plugin sessionstore-mine " + third, "sessionstore-th"},
	} {
		h := newHost(t)
		openStore(t, h, c.p)
		pid := h.Status()[0].PID
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if got, _, _ := strings.Cut(string(line), "\x00"); err != nil || got != c.arguments {
			t.Errorf("%s: ps -f shows %q (%v), want %q", c.p.Adapter, got, err, c.arguments)
		}
		short, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if got := strings.TrimSpace(string(short)); err != nil || got != c.short {
			t.Errorf("%s: ps shows %q (%v), want %q", c.p.Adapter, got, err, c.short)
		}
	}
}
