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

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// sole is a session store that locks its backend, as an embedded database does. A setting makes it fail to start.
type sole struct {
	sessionstore.Store
	held *os.File
}

func (*sole) Exclusive() {}

func (s *sole) Configure(_ context.Context, c plugins.Config) error {
	var settings struct {
		Fail  bool   `json:"fail"`
		Label string `json:"label"`
	}
	if err := c.Decode(&settings); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(c.DataDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return plugins.Unavailable(errors.New("another process has the backend"))
	}
	s.held = file
	if settings.Fail {
		return plugins.Unavailable(errors.New("it fails"))
	}
	return nil
}

func (s *sole) Get(_ context.Context, id string) (sessionstore.Record, error) {
	if id == "slow" {
		<-time.After(300 * time.Millisecond)
	}
	return sessionstore.Record{ID: id}, nil
}

func newSole() plugins.Plugin { return sessionstore.Plugin(&sole{Store: memory.New()}) }

func soleStore(settings string) config.Plugin {
	return config.Plugin{Adapter: "sole", Settings: config.NewSettings([]byte(settings))}
}

// callUntil gets each of the ids until stop is closed, and returns the calls that failed.
func callUntil(t *testing.T, s *pluginhost.SessionStore, stop <-chan struct{}, ids ...string) <-chan error {
	failed := make(chan error, 100)
	var callers sync.WaitGroup
	for _, id := range ids {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Get(t.Context(), id); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	go func() {
		callers.Wait()
		close(failed)
	}()
	return failed
}

func TestAnExclusivePluginEndsBeforeTheNextOneGetsItsSettingsAndNoCallFails(t *testing.T) {
	h := newHost(t)
	old := openStore(t, h, soleStore(`{}`))
	stop := make(chan struct{})
	failed := callUntil(t, old, stop, "a", "b", "slow")
	next, err := h.SessionStore(t.Context(), soleStore(`{"label": "next"}`), old)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close(context.Background()) })
	if _, err := old.Get(t.Context(), "through-the-old-handle"); err != nil {
		t.Errorf("a call through the old handle does not reach the new process: %v", err)
	}
	old.Close(t.Context())
	if _, err := old.Get(t.Context(), "late"); err != nil {
		t.Errorf("a call that found the old handle just before the change: %v", err)
	}
	close(stop)
	for err := range failed {
		t.Errorf("a call failed: %v", err)
	}
	if all := h.Status(); len(all) != 1 || all[0].State != pluginhost.Running {
		t.Errorf("the plugins are %+v", all)
	}
}

func TestAnExclusivePluginResumesWhenTheNextOneDoesNotStartOrIsNotUsed(t *testing.T) {
	h := newHost(t)
	old := openStore(t, h, soleStore(`{}`))
	stop := make(chan struct{})
	failed := callUntil(t, old, stop, "a", "b", "slow")
	_, err := h.SessionStore(t.Context(), soleStore(`{"fail": true}`), old)
	says(t, err, "its backend cannot be reached", "it fails")
	if _, err := old.Get(t.Context(), "after"); err != nil {
		t.Errorf("after a start that failed: %v", err)
	}
	next, err := h.SessionStore(t.Context(), soleStore(`{"label": "next"}`), old)
	if err != nil {
		t.Fatal(err)
	}
	next.Close(t.Context()) // like a reload that fails later
	if _, err := old.Get(t.Context(), "after"); err != nil {
		t.Errorf("after a plugin that was not used: %v", err)
	}
	close(stop)
	for err := range failed {
		t.Errorf("a call failed: %v", err)
	}
	if all := h.Status(); len(all) != 1 || all[0].State != pluginhost.Running {
		t.Errorf("the plugins are %+v", all)
	}
}

func TestOnlyAPluginThatMayHaveTheSameBackendIsSuspended(t *testing.T) {
	h := newHost(t)
	shared := openStore(t, h, config.Plugin{Adapter: "child"})
	pid := h.Status()[0].PID
	next, err := h.SessionStore(t.Context(), config.Plugin{Adapter: "child"}, shared)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close(context.Background())
	if now := h.Status()[0]; now.PID != pid || now.State != pluginhost.Running {
		t.Errorf("a plugin that is not exclusive was stopped before the next one had started: %+v", now)
	}
	sole := openStore(t, h, soleStore(`{}`))
	if _, err := h.SessionStore(t.Context(), soleStore(`{}`)); err == nil || !strings.Contains(err.Error(), "another process has the backend") {
		t.Errorf("two processes have the backend at once: %v", err)
	}
	if _, err := sole.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestASuspendedPluginCanBeClosed(t *testing.T) {
	h := newHost(t)
	old := openStore(t, h, soleStore(`{}`))
	next, err := h.SessionStore(t.Context(), soleStore(`{}`), old)
	if err != nil {
		t.Fatal(err)
	}
	old.Close(t.Context())
	next.Close(t.Context())
	if _, err := old.Get(t.Context(), "a"); !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("a call after both were closed: %v", err)
	}
	if all := h.Status(); len(all) != 0 {
		t.Errorf("the plugins are %+v", all)
	}
}
