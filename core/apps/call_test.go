package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

func call(t *testing.T, y *Manager, method string) error {
	t.Helper()
	_, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: method, Params: json.RawMessage(`{"a":1}`)}})
	return err
}

func TestACallWaitsForAnAppThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.takes = 3 * time.Second })
		m.kill()
		before := time.Now()
		result, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x", Params: json.RawMessage(`{"b": [1]}`)}})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "result", string(result), `{"b": [1]}`)
		expect(t, "time", time.Since(before), 3*time.Second)
	})
}

// During a restart or a change of values, an app is briefly unavailable. Callers notice nothing except the delay.
func TestCallsWaitAndToolsStayListedWhileACommandRestartsAnApp(t *testing.T) {
	blue := "blue"
	commands := map[string]func(context.Context, *Manager) (core.App, error){
		"restart": func(ctx context.Context, y *Manager) (core.App, error) { return y.Restart(ctx, ws, "notes") },
		"new values": func(ctx context.Context, y *Manager) (core.App, error) {
			return y.Configure(ctx, ws, "notes", Settings{Env: map[string]*string{"COLOUR": &blue}})
		},
	}
	for name, command := range commands {
		for moment, during := range map[time.Duration]core.State{time.Second: core.StateStopped, 3 * time.Second: core.StateStarting} {
			synctest.Test(t, func(t *testing.T) {
				m := &memoryApp{tools: []string{"one"}}
				y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
				open(t, y)
				synctest.Wait()
				m.set(func(m *memoryApp) { m.ends, m.takes = 2*time.Second, 3*time.Second })
				changes := 0
				defer y.Watch(ws, func(core.Kind) { changes++ })()
				before := time.Now()
				ended := make(chan error, 1)
				go func() { _, err := command(t.Context(), y); ended <- err }()
				wait(t.Context(), moment)
				expect(t, name+": the state", state(t, y, "notes"), during)
				expect(t, name+": the tools", names(y.Tools(ws)), "notes__one")
				if err := call(t, y, "x"); err != nil {
					t.Errorf("%s: the call while the app is %s: %v", name, during, err)
				}
				expect(t, name+": the call ends when the app runs again", time.Since(before), 5*time.Second)
				if err := <-ended; err != nil {
					t.Errorf("%s: %v", name, err)
				}
				expect(t, name+": changes of the lists", changes, 0)
			})
		}
	}
}

func TestACallWaitsAtMostTenSecondsForItsApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _ := managerOf(t, &memoryApp{hangs: true}, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		before := time.Now()
		expect(t, "code", core.CodeOf(call(t, y, "x")), core.CodeUnavailable)
		expect(t, "time", time.Since(before), 10*time.Second)
	})
}

func TestARunningCallFailsAtOnceWhenTheAppDiesAndIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		got := make(chan error, 1)
		go func() { got <- call(t, y, "hang") }()
		synctest.Wait()
		before := time.Now()
		m.kill()
		err := <-got
		expect(t, "code", core.CodeOf(err), core.CodeUnavailable)
		expect(t, "message", core.TextOf(err), "app notes stopped while the call was running; the call was not repeated")
		expect(t, "time", time.Since(before), 0)
	})
}

func TestACallThatHangsEndsAtItsDeadlineAndTheAppIsNotRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		got := make(chan error, 100)
		before := time.Now()
		for range 100 {
			go func() { got <- call(t, y, "hang") }()
		}
		synctest.Wait()
		if err := call(t, y, "x"); err != nil {
			t.Errorf("another call was affected: %v", err)
		}
		for range 100 {
			err := <-got
			expect(t, "code", core.CodeOf(err), core.CodeUnavailable)
			if !strings.Contains(core.TextOf(err), "5m0s") {
				t.Errorf("the error does not name the timeout: %v", err)
			}
		}
		expect(t, "time", time.Since(before), 5*time.Minute)
		expect(t, "launches", len(m.started()), 1)
		expectEvents(t, events)
	})
}

func TestACallerThatCancelsGetsItsOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _ := managerOf(t, &memoryApp{}, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "hang"}})
		if !errors.Is(err, context.DeadlineExceeded) || core.CodeOf(err) != core.CodeInternal {
			t.Errorf("got %v, want the caller's own deadline", err)
		}
	})
}

func TestConcurrentCallsToOneAppAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, y.o.MaxCalls)
		for range y.o.MaxCalls {
			go func() {
				_, err := y.Call(ctx, ws, "notes", &interact.Call{Request: link.Request{Method: "hang"}})
				got <- err
			}()
		}
		synctest.Wait()
		before := time.Now()
		expect(t, "code of one call too many", core.CodeOf(call(t, y, "x")), core.CodeUnavailable)
		expect(t, "time spent waiting for a slot", time.Since(before), 10*time.Second)
		cancel()
		for range y.o.MaxCalls {
			<-got
		}
		if err := call(t, y, "x"); err != nil {
			t.Errorf("slots are not released: %v", err)
		}
	})
}

func TestACallToAnAppThatIsNotRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _ := managerOf(t, &memoryApp{refuses: "no"}, newMemoryRecords(record("notes", true), record("off", false)))
		open(t, y)
		wait(t.Context(), time.Minute)
		before := time.Now()
		for name, want := range map[string]string{"notes": "dead", "off": "stopped"} {
			_, err := y.Call(t.Context(), ws, name, &interact.Call{Request: link.Request{Method: "x"}})
			expect(t, "code", core.CodeOf(err), core.CodeUnavailable)
			if !strings.Contains(core.TextOf(err), want) {
				t.Errorf("the error does not name the state: %v", err)
			}
		}
		expect(t, "time", time.Since(before), 0)
		expect(t, "missing apps", fmt.Sprint(y.Missing(ws)), "[{notes dead}]")
	})
}

func TestACallWithProgressMayTakeALongTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _ := managerOf(t, &memoryApp{}, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		received := 0
		before := time.Now()
		if _, err := y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "slow", Notify: func(rpc.Notification) { received++ }}}); err != nil {
			t.Fatal(err)
		}
		expect(t, "time", time.Since(before), 10*time.Minute)
		expect(t, "notifications", received, 10)
	})
}

func TestOneUserCannotTakeAllCallsOfAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, _, _ := memoryManager(t)
		slots := y.apps[ws]["notes"].dialog.Slots()
		for range slots.Share() - 1 {
			if err := slots.Take("mallory"); err != nil {
				t.Fatal(err)
			}
		}
		ask := func(user, method, params string, client *interact.Client) (json.RawMessage, error) {
			return y.Call(t.Context(), ws, "notes", &interact.Call{
				Request: link.Request{Method: method, Params: json.RawMessage(params), Sender: user}, Client: client, Owner: user,
			})
		}
		raw, err := ask("mallory", "tools/call", `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`, interact.NewClient("", true, nil))
		firstQuestion(t, raw, err) // a call without a session takes one slot, until it is answered
		before := time.Now()
		if _, err := ask("mallory", "x", `{}`, nil); core.CodeOf(err) != core.CodeRateLimited || !strings.Contains(err.Error(), "the limit is 512 per user") {
			t.Errorf("a call beyond the share: %v", err)
		}
		expect(t, "time spent waiting", time.Since(before), y.o.RestartWait)
		if _, err := ask("victim", "x", `{}`, nil); err != nil {
			t.Errorf("a call by another user: %v", err)
		}
		if _, err := y.Resource(t.Context(), ws, "notes", "ui://notes/x", &interact.Call{Request: link.Request{Sender: "mallory"}}); core.CodeOf(err) != core.CodeRateLimited {
			t.Errorf("reading a view beyond the share: %v", err)
		}
		time.AfterFunc(time.Second, func() { slots.Release("mallory") })
		if _, err := ask("mallory", "x", `{}`, nil); err != nil {
			t.Errorf("a call that waits for another of the same user: %v", err)
		}
	})
}
