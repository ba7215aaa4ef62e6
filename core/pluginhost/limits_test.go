package pluginhost_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// exhaust uses more of a resource than the test's limits allow, until the process is killed.
func exhaust(ctx context.Context, what string) error {
	switch what {
	case "memory":
		held := make([]byte, 384<<20)
		for i := 0; i < len(held); i += 4096 {
			held[i] = 1
		}
		defer runtime.KeepAlive(held)
	case "files":
		for range 300 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
		}
	case "processes":
		for range 8 {
			if err := exec.CommandContext(ctx, "sleep", "600").Start(); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestAPluginThatExceedsALimitIsStoppedAndTheErrorNamesTheLimit(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resource usage is measured only on Linux")
	}
	for what, says := range map[string][]string{
		"memory":    {"stopped because it used ", "; the limit is 288 MiB (plugins.limits.memoryMiB)"},
		"files":     {"stopped because it had ", "file descriptors open; the limit is 200 (plugins.limits.openFiles)"},
		"processes": {"stopped because it had ", "processes; the limit is 4 (plugins.limits.processes)"},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t, func(o *pluginhost.Options) {
				o.Limits = config.PluginLimits{Memory: 288 << 20, OpenFiles: 200, Processes: 4}
				o.CallTimeout = time.Minute
			})
			s := openStore(t, h, config.Plugin{Adapter: "child"})
			if err := roundTrip(t.Context(), s, "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(t.Context(), "use:"+what); err == nil {
				t.Error("a call that uses too much succeeds")
			}
			says := append(says, "its process exited: ")
			testkit.Eventually(t, "the exit is reported", func() bool { return h.Status()[0].LastErr != "" })
			if text := h.Status()[0].LastErr; !containsAll(text, says) {
				t.Errorf("the exit is reported as %q, which does not contain %q", text, says)
			}
			if err := roundTrip(t.Context(), s, "b"); err != nil {
				t.Errorf("the next process: %v", err)
			}
		})
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func TestAPluginThatLogsTooMuchKeepsRunningAndTheLogSaysThatLinesAreDropped(t *testing.T) {
	var lines testkit.Log
	h := newHost(t, func(o *pluginhost.Options) {
		o.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines, Level: hclog.Debug})
		o.Limits = config.PluginLimits{LogLines: 20}
	})
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	if _, err := s.Get(t.Context(), "flood"); err != nil {
		t.Fatal(err)
	}
	const notice = "this plugin may log 20 lines per second (plugins.limits.logLinesPerSecond)"
	testkit.Eventually(t, "the log says that lines are dropped", func() bool { return lines.Contains(notice) })
	s.Close(t.Context())
	if n := strings.Count(lines.String(), "of the flood"); n == 0 || n > 300 {
		t.Errorf("%d of 500 lines were logged", n)
	}
}
