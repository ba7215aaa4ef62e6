package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func (t *trial) runSessionStore(ctx context.Context, r *report) error {
	settings, backend, err := t.withBackend()
	if err != nil {
		return err
	}
	defer backend.Close()
	store, err := t.host.SessionStore(ctx, t.with(settings))
	if err != nil {
		return err
	}
	defer t.close(store)
	subject := sessionstoretest.Subject{
		Store: store.Store(), Durable: slices.Contains(t.who.Capabilities, plugins.CapabilityDurable),
		Exclusive: slices.Contains(t.who.Capabilities, plugins.CapabilityExclusive), Restart: t.restart, Keep: t.keep,
	}
	switch {
	case backend.Proxy != nil:
		subject.Backend = backend.Proxy
	case t.backend == noBackend:
		subject.NoBackend = "--backend none states that there is none"
	}
	if subject.Durable && !subject.Exclusive {
		second, err := t.host.SessionStore(ctx, t.with(settings))
		if err != nil {
			return fmt.Errorf("start a second process on the same backend: %w", err)
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			second.Close(ctx)
		}()
		subject.Second = second.Store()
	}
	judge(ctx, r, sessionstoretest.Properties(), t.kit, subject)
	return nil
}

// restart kills the only plugin's process, and waits until the next one serves.
func (t *trial) restart(ctx context.Context) error {
	before, limit := t.host.Status()[0], 2*t.kit.Start
	t.restarts += before.Restarts
	t.note(before)
	t.restarts -= before.Restarts + 1 // the plugin is not blamed for this restart
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(limit); time.Now().Before(until); {
		now := t.host.Status()[0]
		if now.State == pluginhost.Running && now.PID != before.PID {
			return nil
		}
		if now.Restarts > before.Restarts && now.LastErr != "" {
			before.LastErr = now.LastErr
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("the next process did not serve within %v after kill -9; raise --start-timeout if the machine is busy; the last process exited because: %s", limit, before.LastErr)
}
