package pluginhost_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestAKilledPluginIsReplacedAndNoCallFails(t *testing.T) {
	h := newHost(t)
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	stop := make(chan struct{})
	failed := make(chan error, 8)
	calls := make([]int, 4)
	var callers sync.WaitGroup
	for i := range calls {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Get(t.Context(), "log"); err != nil {
					failed <- err
					return
				}
				calls[i]++
			}
		})
	}
	for range 5 {
		kill(t, h, syscall.SIGKILL)
		if err := roundTrip(t.Context(), s, "between"); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	callers.Wait()
	close(failed)
	for err := range failed {
		t.Errorf("a call failed: %v", err)
	}
	for i, n := range calls {
		if n == 0 {
			t.Errorf("caller %d did not call anything", i)
		}
	}
	if got := h.Status()[0]; got.Restarts != 5 || got.LastErr == "" {
		t.Errorf("status is %+v", got)
	}
}

func TestAPluginThatHangsIsReplaced(t *testing.T) {
	h := newHost(t, func(o *pluginhost.Options) { o.CallTimeout, o.PingEvery = time.Minute, 500*time.Millisecond })
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	kill(t, h, syscall.SIGSTOP) // returns when another process has taken over
	if err := roundTrip(t.Context(), s, "a"); err != nil {
		t.Error(err)
	}
}

func TestAPluginThatKeepsExitingIsRestartedWithPauses(t *testing.T) {
	h := newHost(t)
	openStore(t, h, config.Plugin{Adapter: "fleeting"})
	<-time.After(3 * time.Second)
	// Pauses of 50, 100, 200 and then 400 ms leave room for ten.
	if got := h.Status()[0].Restarts; got > 12 {
		t.Errorf("it was replaced %d times in three seconds", got)
	}
	testkit.Eventually(t, "it is replaced", func() bool { return h.Status()[0].Restarts > 0 })
}

// kill signals the only plugin and waits until another process serves.
func kill(t *testing.T, h *pluginhost.Host, sig syscall.Signal) {
	t.Helper()
	before := h.Status()[0]
	if err := syscall.Kill(before.PID, sig); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the plugin was replaced", func() bool {
		now := h.Status()[0]
		return now.State == "running" && now.PID != before.PID
	})
}

func TestAnUnavailableAuthPluginFailsClosed(t *testing.T) {
	file, sum := thirdParty(t, t.TempDir())
	var home string
	h := newHost(t, func(o *pluginhost.Options) { o.ReplaceWait, home = 200*time.Millisecond, o.Home })
	a, err := h.Auth(t.Context(), config.Plugin{Adapter: "yes"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Verify(t.Context(), auth.VerifyRequest{Token: "t"}); err != nil {
		t.Errorf("a live plugin returned %v", err)
	}
	a.Close(t.Context())
	if id, err := a.Verify(t.Context(), auth.VerifyRequest{Token: "t"}); !errors.Is(err, plugins.ErrUnavailable) || id.Subject != "" {
		t.Errorf("a closed plugin returned %+v, %v", id, err)
	}

	s := openStore(t, h, config.Plugin{Adapter: "third", Path: file, SHA256: sum})
	kept, err := filepath.Glob(filepath.Join(home, "plugins", ".*."+sum))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the copies that the plugin is started from are %v, %v", kept, err)
	}
	replaceFile(t, file)
	if err := errors.Join(os.Remove(kept[0]), os.WriteFile(kept[0], []byte("something else"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(h.Status()[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the death is noticed", func() bool {
		_, err = s.Get(t.Context(), "env:PATH")
		return err != nil && h.Status()[0].State == "restarting"
	})
	if !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), "third") {
		t.Errorf("a plugin whose file has changed was restarted, or returned %v", err)
	}
}

func TestClosingWaitsForPendingCalls(t *testing.T) {
	var lines testkit.Log
	h := newHost(t, func(o *pluginhost.Options) { o.Logger = lines.Logger(hclog.Info, true) })
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	answered := make(chan error, 1)
	go func() {
		_, err := s.Get(t.Context(), "slow")
		answered <- err
	}()
	testkit.Eventually(t, "the call began", func() bool { return lines.Contains("A slow call began.") })
	s.Close(t.Context())
	select {
	case err := <-answered:
		if err != nil {
			t.Errorf("the call in progress failed: %v", err)
		}
	default:
		t.Error("the plugin was closed before its call had ended")
	}
	if _, err := s.Get(t.Context(), "slow"); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("a call after the close returned %v", err)
	}
}

func TestAClosedHandleDoesNotWaitLongerThanItsContext(t *testing.T) {
	s := openStore(t, newHost(t), config.Plugin{Adapter: "child"})
	began := make(chan struct{})
	go func() {
		close(began)
		_, _ = s.Get(t.Context(), "slow")
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Close(ctx) // goleak would find a plugin that was left behind
}

func TestAPluginsLogLinesArriveWithTheirFields(t *testing.T) {
	var lines testkit.Log
	h := newHost(t, func(o *pluginhost.Options) {
		o.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines, JSONFormat: true, Level: hclog.Trace})
	})
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	if _, err := s.Get(t.Context(), "log"); err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
	for line := range strings.Lines(lines.String()) {
		if strings.Contains(line, "The store was asked to log.") {
			for _, part := range []string{`"color":"blue"`, `"@level":"warn"`, "sessionstore.child"} {
				if !strings.Contains(line, part) {
					t.Errorf("the line lacks %s: %s", part, line)
				}
			}
			return
		}
	}
	t.Errorf("the line did not arrive:\n%s", lines.String())
}

func TestAPluginThatDoesNotExitIsKilledAndTheLogSaysWhy(t *testing.T) {
	var lines testkit.Log
	h := newHost(t, func(o *pluginhost.Options) { o.Logger = hclog.New(&hclog.LoggerOptions{Output: &lines}) })
	testkit.Eventually(t, "a plugin exits on its own", func() bool { // on a busy machine, not always within two seconds
		before := strings.Count(lines.String(), "plugin was killed")
		openStore(t, h, config.Plugin{Adapter: "child"}).Close(t.Context())
		return strings.Count(lines.String(), "plugin was killed") == before
	})
	openStore(t, h, config.Plugin{Adapter: "hanging"}).Close(t.Context())
	if !strings.Contains(lines.String(), "sessionstore.hanging: plugin was killed: it did not exit within two seconds of Shutdown") {
		t.Errorf("the log does not say why a plugin was killed: %s", lines.String())
	}
}

// replaceFile replaces a running executable, which cannot be written to.
func replaceFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	thirdParty(t, filepath.Dir(path))
	changeOneByte(t, path)
}
