package apps

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
)

func TestAnUnavailableRemoteAppIsRetriedUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, events := managerOf(t, m, newMemoryRecords(remoteRecord("notes", true)))
		open(t, y)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.refuses = "connection refused" })
		m.kill()
		wait(t.Context(), 8*time.Hour)
		app, err := y.App(ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "state after 8 hours", app.Status, core.StateCrashed)
		expect(t, "the reason", app.LastError, "connection refused")
		starts := m.started()
		for i := 2; i < len(starts); i++ {
			if pause := starts[i].Sub(starts[i-1]); pause > time.Minute {
				t.Errorf("attempt %d came %v after the previous one", i, pause)
			}
		}
		if len(starts) > 600 {
			t.Errorf("%d attempts in 8 hours", len(starts))
		}
		m.set(func(m *memoryApp) { m.refuses = "" })
		wait(t.Context(), time.Minute)
		expect(t, "state when the server is back", state(t, y, "notes"), core.StateRunning)
		expectEvents(t, events, "bundle.crashed 1", "bundle.crashed 2", "bundle.crashed 3", "bundle.recovered")
		if app, _ := y.App(ws, "notes"); app.LastError != "" {
			t.Errorf("the running app shows the error %q", app.LastError)
		}
	})
}

func TestStartingAnUnavailableRemoteAppSaysWhyItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := managerOf(t, m, newMemoryRecords(remoteRecord("notes", true)))
		open(t, y)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.refuses = "connection refused" })
		m.kill()
		wait(t.Context(), time.Hour)
		for range 5 { // at any time between two attempts
			before := time.Now()
			_, err := y.Start(t.Context(), ws, "notes")
			if core.CodeOf(err) != core.CodeStartFailed || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("the error is %v", err)
			}
			if waited := time.Since(before); waited > 3*time.Second {
				t.Errorf("the start returned after %v", waited)
			}
			wait(t.Context(), 7*time.Second)
		}
		expect(t, "state", state(t, y, "notes"), core.StateCrashed)
		m.set(func(m *memoryApp) { m.refuses = "" })
		if _, err := y.Start(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		expect(t, "state when the server is back", state(t, y, "notes"), core.StateRunning)
	})
}

func TestAnUnavailableRemoteAppIsRetriedAtOnceWhenItIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := managerOf(t, m, newMemoryRecords(remoteRecord("notes", true)))
		open(t, y)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.refuses = "connection refused" })
		m.kill()
		wait(t.Context(), time.Hour)
		for m.started()[len(m.started())-1] != time.Now() { // until an attempt has just failed
			wait(t.Context(), time.Second)
		}
		wait(t.Context(), 2*time.Second)
		m.set(func(m *memoryApp) { m.refuses = "" })
		before := time.Now()
		if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x", Params: json.RawMessage(`{}`)}}); err != nil {
			t.Errorf("the call returned %v", err)
		}
		expect(t, "time until the call returned", time.Since(before), 0)
	})
}

func TestCallsToAnUnavailableRemoteAppDoNotFloodIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := managerOf(t, m, newMemoryRecords(remoteRecord("notes", true)))
		open(t, y)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.refuses = "connection refused" })
		m.kill()
		wait(t.Context(), time.Hour)
		before := len(m.started())
		for range 10 {
			if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x"}}); core.CodeOf(err) != core.CodeUnavailable {
				t.Errorf("the call returned %v", err)
			}
		}
		if n := len(m.started()) - before; n > 105 { // 10 s per call, one attempt per second
			t.Errorf("%d attempts were made", n)
		}
	})
}
