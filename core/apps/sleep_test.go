package apps

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

const idleLimit = 10 * time.Minute

// idling returns declarations that limit how long apps may be unused.
func idling(limit time.Duration, names ...string) map[string]config.App {
	declared := map[string]config.App{}
	for _, name := range names {
		declared[name] = config.App{Idle: &limit}
	}
	return declared
}

// sleepyManager returns an open manager with the app notes, which may be unused for idleLimit.
func sleepyManager(t *testing.T, m *memoryApp) (*Manager, *memoryEvents) {
	t.Helper()
	y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
	y.Reconfigure(nil, idling(idleLimit, "notes"))
	open(t, y)
	synctest.Wait()
	return y, events
}

func asleep(t *testing.T, y *Manager, name string) bool {
	t.Helper()
	a, err := y.App(ws, name)
	if err != nil {
		t.Fatal(err)
	}
	return a.Asleep
}

func use(t *testing.T, y *Manager, name string) error {
	_, err := y.Call(t.Context(), ws, name, &interact.Call{Request: link.Request{Method: "echo"}})
	return err
}

// pass advances the clock by d and waits for the effects.
func pass(t *testing.T, d time.Duration) {
	wait(t.Context(), d)
	synctest.Wait()
}

func TestAnUnusedAppSleepsUntilItIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}, takes: 30 * time.Second, ends: time.Second}
		y, events := sleepyManager(t, m)
		changes := 0
		defer y.Watch(ws, func(core.Kind) { changes++ })()
		pass(t, time.Minute)
		changes = 0
		pass(t, idleLimit-time.Minute)
		expect(t, "asleep before the limit", asleep(t, y, "notes"), false)
		pass(t, idleLimit)
		expect(t, "asleep", asleep(t, y, "notes"), true)
		expect(t, "asleep apps", y.Asleep(), 1)
		expect(t, "processes", m.alive(), 0)
		expect(t, "state", state(t, y, "notes"), core.StateRunning)
		expect(t, "tools", len(y.Tools(ws)), 1)
		before := y.Health(ws)[0].Uptime

		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if err := use(t, y, "notes"); err != nil {
					t.Errorf("a call to a sleeping app: %v", err)
				}
			})
		}
		calls.Wait()
		expect(t, "starts", len(m.started()), 2)
		expect(t, "asleep after the calls", asleep(t, y, "notes"), false)
		expect(t, "asleep apps after the calls", y.Asleep(), 0)
		health := y.Health(ws)[0]
		expect(t, "restarts", health.RestartCount, 0)
		expect(t, "uptime continues", health.Uptime > before, true)
		expect(t, "announced changes of lists", changes, 0)
		expectEvents(t, events)
		pass(t, 2*idleLimit)
		expect(t, "asleep again", asleep(t, y, "notes"), true)
	})
}

func TestAnAppThatIsInUseStaysAwake(t *testing.T) {
	cpu := time.Duration(0)
	doing := func(change func(*process.Activity) bool) func(*testing.T, *Manager, *memoryApp) {
		return func(_ *testing.T, _ *Manager, m *memoryApp) { m.set(func(m *memoryApp) { m.activity = change }) }
	}
	for name, use := range map[string]func(*testing.T, *Manager, *memoryApp){
		"calls": func(t *testing.T, y *Manager, _ *memoryApp) {
			for range 20 {
				if err := use(t, y, "notes"); err != nil {
					t.Error(err)
				}
				pass(t, idleLimit/2)
			}
		},
		"a long call": func(t *testing.T, y *Manager, _ *memoryApp) {
			go func() { // a call is cancelled after Options.CallTimeout
				for t.Context().Err() == nil {
					_, _ = y.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "hang"}})
				}
			}()
		},
		"a subscription": func(t *testing.T, y *Manager, _ *memoryApp) {
			if err := y.Subscribe(t.Context(), ws, "notes", "", "usr_1", "note://1"); err != nil {
				t.Error(err)
			}
		},
		"a child":                      doing(func(a *process.Activity) bool { a.Processes = append(a.Processes, 2); return true }),
		"a connection":                 doing(func(a *process.Activity) bool { a.Connected = true; return true }),
		"processor time":               doing(func(a *process.Activity) bool { cpu += quietCPU; a.CPUTime = cpu; return true }),
		"activity that cannot be seen": doing(func(*process.Activity) bool { return false }),
		"another configuration":        func(_ *testing.T, y *Manager, _ *memoryApp) { y.Reconfigure(nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memoryApp{tools: []string{"echo"}}
				y, _ := sleepyManager(t, m)
				use(t, y, m)
				starts := len(m.started())
				if name != "calls" {
					pass(t, idleLimit/2)
					for range 20 {
						if asleep(t, y, "notes") {
							t.Fatal("it sleeps")
						}
						pass(t, idleLimit/4)
					}
				}
				expect(t, "asleep", asleep(t, y, "notes") && name != "calls", false)
				expect(t, "starts", len(m.started()), starts)
			})
		})
	}
}

func TestAReloadPutsRunningAppsToSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		pass(t, 2*idleLimit)
		expect(t, "asleep without a limit", asleep(t, y, "notes"), false)
		y.Reconfigure(nil, idling(idleLimit, "notes"))
		pass(t, 2*idleLimit)
		expect(t, "asleep", asleep(t, y, "notes"), true)
		expect(t, "starts", len(m.started()), 1)
	})
}

func TestAppsOfAllWorkspacesSleepUnlessTheirOwnSectionSaysNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		elsewhere := record("awake", true)
		elsewhere.Workspace = "ws_other"
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true), record("awake", true), elsewhere))
		y.o.Idle = idleLimit
		y.Reconfigure(nil, idling(0, "awake"))
		open(t, y)
		pass(t, 2*idleLimit)
		expect(t, "asleep", asleep(t, y, "notes"), true)
		expect(t, "asleep, with a section that says never", asleep(t, y, "awake"), false)
		expect(t, "asleep apps", y.Asleep(), 2)
	})
}

func TestCommandsOnASleepingAppWork(t *testing.T) {
	command := func(run func(*testing.T, *Manager) error, state core.State, starts int) func(*testing.T, *Manager, *memoryApp) {
		return func(t *testing.T, y *Manager, m *memoryApp) {
			if err := run(t, y); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			app, err := y.App(ws, "notes")
			expect(t, "state", app.Status, state)
			expect(t, "not found", err != nil, state == "")
			expect(t, "asleep", app.Asleep, state == core.StateRunning && starts == 1)
			expect(t, "starts", len(m.started()), starts)
		}
	}
	for name, run := range map[string]func(*testing.T, *Manager, *memoryApp){
		"start":   command(func(t *testing.T, y *Manager) error { _, err := y.Start(t.Context(), ws, "notes"); return err }, core.StateRunning, 1),
		"stop":    command(func(t *testing.T, y *Manager) error { _, err := y.Stop(t.Context(), ws, "notes"); return err }, core.StateStopped, 1),
		"restart": command(func(t *testing.T, y *Manager) error { _, err := y.Restart(t.Context(), ws, "notes"); return err }, core.StateRunning, 2),
		"configure": command(func(t *testing.T, y *Manager) error {
			value := "blue"
			_, err := y.Configure(t.Context(), ws, "notes", Settings{Env: map[string]*string{"COLOUR": &value}})
			return err
		}, core.StateRunning, 2),
		"subscribe": command(func(t *testing.T, y *Manager) error {
			return y.Subscribe(t.Context(), ws, "notes", "", "usr_1", "note://1")
		}, core.StateRunning, 2),
		"uninstall": command(func(t *testing.T, y *Manager) error { _, err := y.Uninstall(t.Context(), ws, "notes"); return err }, "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memoryApp{tools: []string{"echo"}}
				y, _ := sleepyManager(t, m)
				pass(t, 2*idleLimit)
				expect(t, "asleep before", asleep(t, y, "notes"), true)
				run(t, y, m)
			})
		})
	}
}

func TestASleepingAppThatDoesNotWakeUpIsCrashed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, events := sleepyManager(t, m)
		pass(t, 2*idleLimit)
		m.set(func(m *memoryApp) { m.refuses = "the disk is gone" })
		err := use(t, y, "notes")
		if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("the call: %v", err)
		}
		expect(t, "asleep", asleep(t, y, "notes"), false)
		expect(t, "first event", events.texts()[0], "bundle.crashed 1")
	})
}

func TestOnlyACallThatWokeItsAppIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := sleepyManager(t, m)
		pass(t, 2*idleLimit)
		refused := core.Errorf(core.CodeWorkspaceDenied, "not a member")
		recheck := func(context.Context) error {
			expect(t, "asleep when the call is checked", asleep(t, y, "notes"), false)
			return refused
		}
		call := &interact.Call{Request: link.Request{Method: "echo"}, Recheck: recheck}
		if _, err := y.Call(t.Context(), ws, "notes", call); core.CodeOf(err) != core.CodeWorkspaceDenied {
			t.Errorf("the call that woke the app: %v", err)
		}
		if _, err := y.Call(t.Context(), ws, "notes", call); err != nil {
			t.Errorf("a call to the running app: %v", err)
		}
		pass(t, 2*idleLimit)
		expect(t, "asleep: the rejected call does not keep its slot", asleep(t, y, "notes"), true)
	})
}

func TestAToolThatChangedWhileItsAppSleptIsHeldBack(t *testing.T) {
	s := openStore(t)
	m := &memoryApp{tools: honest()}
	y, _ := pinned(t, s, m, newMemoryRecords(record("notes", true)))
	y.Reconfigure(nil, idling(40*time.Millisecond, "notes"))
	open(t, y)
	testkit.Eventually(t, "it sleeps", func() bool { return asleep(t, y, "notes") })
	m.set(func(m *memoryApp) { m.tools[0] = rugPulls()["description"](m.tools[0]) })
	_, err := callTool(t, y, "notes", "read", "")
	expect(t, "a call to the changed tool", core.CodeOf(err), core.CodeToolHeld)
	expect(t, "it is listed", slices.Contains(served(y), "read"), false)
	// The caller may have looked up the tool before another call woke the app.
	_, err = callTool(t, y, "notes", "read", "")
	expect(t, "a call to the running app", core.CodeOf(err), core.CodeToolHeld)
	if _, err := callTool(t, y, "notes", "write", ""); core.CodeOf(err) == core.CodeToolHeld {
		t.Errorf("another tool: %v", err)
	}
}

func TestCallsToManySleepyAppsNeverFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const apps = 20
		m := &memoryApp{tools: []string{"echo"}, takes: 10 * time.Millisecond, ends: 10 * time.Millisecond}
		var records []core.Installation
		var names []string
		for i := range apps {
			names = append(names, fmt.Sprintf("app-%d", i))
			records = append(records, record(names[i], true))
		}
		y, events := managerOf(t, m, newMemoryRecords(records...))
		y.Reconfigure(nil, idling(time.Second, names...))
		open(t, y)
		synctest.Wait()
		var clients sync.WaitGroup
		for client := range 5 {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			clients.Go(func() {
				for range 2000 {
					if err := use(t, y, names[random.IntN(apps)]); err != nil {
						t.Errorf("a call failed: %v", err)
					}
					wait(t.Context(), time.Duration(random.IntN(600))*time.Millisecond)
				}
			})
		}
		clients.Wait()
		if starts := len(m.started()); starts < 10*apps {
			t.Errorf("%d starts: the apps hardly slept", starts)
		}
		expectEvents(t, events)
	})
}

func TestTheProcessesOfASleepingAppHaveExited(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) { o.Configured = idling(200*time.Millisecond, "notes") })
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	a, err := y.find(ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	if in := a.current(); in != nil {
		<-in.Done()
	}
	testkit.Eventually(t, "it sleeps", func() bool { return asleep(t, y, "notes") })
	if d, err := y.Details(ws, "notes"); err != nil || d.MemoryBytes != nil || d.Since == "" {
		t.Errorf("details: memory %v, since %q, %v", d.MemoryBytes, d.Since, err)
	}
	if text, err := callTool(t, y, "notes", "echo", "hello"); err != nil || text != "hello" {
		t.Errorf("echo: %q, %v", text, err)
	}
	if _, err := y.Stop(t.Context(), ws, "notes"); err != nil {
		t.Error(err)
	}
}
