package pluginhost_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

func TestAPluginIsGivenTheServersVersionAndCapabilitiesAndItsDirectory(t *testing.T) {
	var home string
	h := newHost(t, func(o *pluginhost.Options) { home, o.Version = o.Home, "1.2.3" })
	want := []string{"version 1.2.3", "capabilities [exclusive revocations session.replace verify.request]", filepath.Join(home, "plugins", "data", "sessionstore-mirror")}
	says(t, h.Check(t.Context(), plugins.KindSessionStore, config.Plugin{Adapter: "mirror"}), want...)
	_, err := h.SessionStore(t.Context(), config.Plugin{Adapter: "mirror"})
	says(t, err, want...)
}

func openAuth(t *testing.T, h *pluginhost.Host, adapter string) *pluginhost.Auth {
	t.Helper()
	a, err := h.Auth(t.Context(), config.Plugin{Adapter: adapter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

func TestAWatchEndsWithItsProcessAndRestartsOnTheNextOne(t *testing.T) {
	h := newHost(t)
	a := openAuth(t, h, "revoking")
	if !a.Revokes() {
		t.Fatal("the adapter does not declare revocations")
	}
	watch := func() (subjects chan string, ended chan error) {
		subjects, ended = make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- a.Watch(t.Context(), func(r auth.Revocation) error { subjects <- r.Subject; return nil })
		}()
		return subjects, ended
	}
	subjects, ended := watch()
	if got, want := <-subjects, fmt.Sprint(h.Status()[0].PID); got != want {
		t.Errorf("the process %s reports the subject %s", want, got)
	}
	kill(t, h, syscall.SIGKILL)
	if err := <-ended; !errors.Is(err, plugins.ErrUnavailable) {
		t.Errorf("the watch of a process that was killed ends with %v", err)
	}
	subjects, ended = watch()
	if got, want := <-subjects, fmt.Sprint(h.Status()[0].PID); got != want {
		t.Errorf("the process %s reports the subject %s", want, got)
	}
	a.Close(t.Context()) // Close does not wait for the watch
	if err := <-ended; err == nil {
		t.Error("the watch of a closed plugin ends without an error")
	}
}

func TestAnAdapterWithoutRevocationsReportsThat(t *testing.T) {
	a := openAuth(t, newHost(t), "yes")
	if a.Revokes() {
		t.Error("the adapter declares revocations")
	}
	if err := a.Watch(t.Context(), func(auth.Revocation) error { return nil }); !errors.Is(err, plugins.ErrUnimplemented) {
		t.Errorf("its watch ends with %v", err)
	}
}
