package pluginhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
)

// A stopped shim does not report an exit, as on a machine that is too busy to notice it soon.
func TestACallWaitsForAnExitThatIsNoticedLate(t *testing.T) {
	h := newHost(t, func(o *pluginhost.Options) { o.CallTimeout, o.PingEvery = time.Minute, time.Minute })
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	plugin := h.Status()[0].PID
	shim := parentOf(t, plugin)
	if err := errors.Join(syscall.Kill(shim, syscall.SIGSTOP), syscall.Kill(plugin, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*time.Second, func() { _ = syscall.Kill(shim, syscall.SIGCONT) })
	if err := roundTrip(t.Context(), s, "late"); err != nil {
		t.Error(err)
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	parent, err := strconv.Atoi(strings.Fields(fields)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}
