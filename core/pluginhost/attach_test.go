package pluginhost_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// startAlone starts a built-in session store as a developer would, and returns its process and its socket.
func startAlone(t *testing.T, adapter string) (process *os.Process, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // short enough for a socket path
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "plugin", "serve", "sessionstore", adapter)
	cmd.Env = append(os.Environ(), "ROPEWALK_PLUGIN=sessionstore", "PLUGIN_UNIX_SOCKET_DIR="+dir, "STARTED_BY=developer")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	fields := strings.Split(line, "|")
	if err != nil || len(fields) < 5 {
		t.Fatalf("the handshake line is %q: %v", line, err)
	}
	return cmd.Process, fields[3]
}

// attach attaches a process to the only session store. It returns a function that ends the attachment, and a
// channel with its result.
func attach(t *testing.T, h *pluginhost.Host, socket string) (detach context.CancelFunc, ended <-chan error) {
	t.Helper()
	ctx, detach := context.WithCancel(t.Context())
	t.Cleanup(detach)
	attached, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- h.Attach(ctx, plugins.KindSessionStore, "", socket, func(plugins.Info) { close(attached) })
	}()
	select {
	case <-attached:
	case err := <-result:
		t.Fatal(err)
	}
	return detach, result
}

// answeredBy returns who started the process that answers.
func answeredBy(t *testing.T, s *pluginhost.SessionStore) string {
	t.Helper()
	r, err := s.Get(t.Context(), "env:STARTED_BY")
	if err != nil {
		t.Error(err)
	}
	return r.Subject
}

func TestAnAttachedPluginAnswersUntilEitherEndDisconnectsAndNoCallFails(t *testing.T) {
	h := newHost(t)
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	stop := make(chan struct{})
	failed := callUntil(t, s, stop, "env:PATH", "env:TZ", "slow")
	for _, end := range []string{"detach", "kill", "terminate"} {
		process, socket := startAlone(t, "child")
		detach, ended := attach(t, h, socket)
		if got := answeredBy(t, s); got != "developer" {
			t.Errorf("while it is attached, the process that %q started answers", got)
		}
		if got := h.Status()[0]; got.State != pluginhost.Attached {
			t.Errorf("status is %+v", got)
		}
		var err error
		switch end {
		case "detach":
			detach()
		case "kill":
			err = process.Kill()
		default:
			err = process.Signal(syscall.SIGTERM)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; (err == nil) != (end == "detach") || err != nil && !errors.Is(err, pluginhost.ErrDetached) {
			t.Errorf("%s: the attachment ended with %v", end, err)
		}
		if got := answeredBy(t, s); got != "" {
			t.Errorf("%s: the process that %q started still answers", end, got)
		}
	}
	close(stop)
	for err := range failed {
		t.Errorf("a call failed: %v", err)
	}
	if got := h.Status()[0]; got.State != pluginhost.Running || got.Restarts != 0 {
		t.Errorf("status is %+v", got)
	}
}

func TestAnAttachedPluginHasNoTimeLimitAndItsCallsAreRepeatedWhenItIsDetachedAtABreakpoint(t *testing.T) {
	h := newHost(t, func(o *pluginhost.Options) { o.CallTimeout = 2 * time.Second })
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	_, socket := startAlone(t, "child")
	detach, ended := attach(t, h, socket)
	result := make(chan sessionstore.Record, 1)
	go func() {
		r, err := s.Get(t.Context(), "breakpoint")
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	select {
	case <-result:
		t.Error("a call that is at a breakpoint ended")
	case <-time.After(2500 * time.Millisecond): // longer than a call may take
	}
	detach()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := <-result; got.Subject != "the server's" {
		t.Errorf("the process that answered is %q", got.Subject)
	}
}

func TestAttachSaysWhyAProcessCannotBeAttached(t *testing.T) {
	h := newHost(t)
	never := func(plugins.Info) { t.Error("it was attached") }
	says(t, h.Attach(t.Context(), plugins.KindSessionStore, "", "/nowhere", never), "no sessionstore plugin", "plugin list")
	s := openStore(t, h, config.Plugin{Adapter: "child"})
	says(t, h.Attach(t.Context(), plugins.KindSessionStore, "other", "/nowhere", never), `no sessionstore plugin "other"`)
	says(t, h.Attach(t.Context(), plugins.KindSessionStore, "", "/nowhere", never), "/nowhere", "does not respond to Info")
	_, exclusive := startAlone(t, "sole")
	says(t, h.Attach(t.Context(), plugins.KindSessionStore, "", exclusive, never), "exclusive", "one writer")
	_, socket := startAlone(t, "child")
	detach, ended := attach(t, h, socket)
	says(t, h.Attach(t.Context(), plugins.KindSessionStore, "", socket, never), "already been configured")
	_, second := startAlone(t, "child")
	says(t, h.Attach(t.Context(), plugins.KindSessionStore, "", second, never), "another process is attached")
	s.Close(t.Context())
	if err := <-ended; !errors.Is(err, pluginhost.ErrDetached) {
		t.Errorf("a plugin that was closed: the attachment ended with %v", err)
	}
	detach()
}
