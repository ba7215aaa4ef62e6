package apps

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/process"
)

// crowdedManager returns a manager with n running apps that may sleep, named app-0 and so on.
func crowdedManager(t *testing.T, m *memoryApp, n int, change func(*Options)) (*Manager, []string) {
	t.Helper()
	var records []core.Installation
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("app-%d", i))
		records = append(records, record(names[i], true))
	}
	y, _ := managerOf(t, m, newMemoryRecords(records...))
	change(&y.o)
	y.Reconfigure(nil, idling(24*time.Hour, names...))
	open(t, y)
	synctest.Wait()
	return y, names
}

// awake returns the names of the apps that have processes.
func awake(t *testing.T, y *Manager, names []string) string {
	t.Helper()
	var all []string
	for _, name := range names {
		if !asleep(t, y, name) {
			all = append(all, name)
		}
	}
	return fmt.Sprint(all)
}

func TestTheLeastRecentlyUsedAppsAboveMaxAwakeSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, names := crowdedManager(t, m, 5, func(*Options) {})
		for _, name := range []string{"app-3", "app-0", "app-4", "app-2", "app-1"} {
			pass(t, time.Second)
			if err := use(t, y, name); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, "awake without a limit", awake(t, y, names), fmt.Sprint(names))
		y.SetMaxAwake(2)
		synctest.Wait()
		expect(t, "awake", awake(t, y, names), "[app-1 app-2]")
		expect(t, "processes", m.alive(), 2)
		if err := use(t, y, "app-3"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect(t, "awake after a call", awake(t, y, names), "[app-1 app-3]")
	})
}

func TestNeededAppsAboveMaxAwakeStayAwakeUntilTheyAreIdle(t *testing.T) {
	for name, need := range map[string]func(t *testing.T, y *Manager, m *memoryApp) (release func()){
		"a subscription": func(t *testing.T, y *Manager, _ *memoryApp) func() {
			each := func(do func(ctx context.Context, workspace, server, session, user, uri string) error) {
				for _, app := range []string{"app-0", "app-1"} {
					if err := do(t.Context(), ws, app, "s", "usr_1", "note://1"); err != nil {
						t.Error(err)
					}
				}
			}
			each(y.Subscribe)
			return func() { each(y.Unsubscribe) }
		},
		"a child": func(_ *testing.T, _ *Manager, m *memoryApp) func() {
			m.set(func(m *memoryApp) {
				m.activity = func(a *process.Activity) bool { a.Processes = append(a.Processes, 2); return true }
			})
			return func() { m.set(func(m *memoryApp) { m.activity = nil }) }
		},
		"the configuration": func(_ *testing.T, y *Manager, _ *memoryApp) func() {
			y.Reconfigure(nil, idling(0, "app-0", "app-1"))
			return func() { y.Reconfigure(nil, idling(24*time.Hour, "app-0", "app-1")) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memoryApp{tools: []string{"echo"}}
				y, names := crowdedManager(t, m, 2, func(*Options) {})
				release := need(t, y, m)
				y.SetMaxAwake(1)
				pass(t, time.Minute)
				expect(t, "awake", awake(t, y, names), "[app-0 app-1]")
				release()
				pass(t, time.Minute)
				expect(t, "processes", m.alive(), 1)
			})
		})
	}
}

func TestCallsToManyAppsWithFewAwakeNeverFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const apps, most = 60, 5
		m := &memoryApp{tools: []string{"echo"}, takes: 10 * time.Millisecond, ends: 10 * time.Millisecond}
		y, names := crowdedManager(t, m, apps, func(*Options) {})
		y.SetMaxAwake(most)
		var clients sync.WaitGroup
		for client := range 5 {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			clients.Go(func() {
				for range 2000 {
					if err := use(t, y, names[random.IntN(apps)]); err != nil {
						t.Errorf("a call failed: %v", err)
					}
				}
			})
		}
		clients.Wait()
		pass(t, time.Minute)
		expect(t, "processes", m.alive(), most)
		if starts := len(m.started()); starts < 10*apps {
			t.Errorf("%d starts: the apps hardly slept", starts)
		}
	})
}

func TestAppsSleepOneAfterAnotherWhileMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		var short atomic.Bool
		y, names := crowdedManager(t, m, 3, func(o *Options) { o.MemoryIsShort = short.Load })
		pass(t, time.Minute)
		for _, name := range []string{"app-2", "app-0", "app-1"} {
			if err := use(t, y, name); err != nil {
				t.Fatal(err)
			}
			pass(t, time.Second)
		}
		expect(t, "awake", awake(t, y, names), fmt.Sprint(names))
		short.Store(true)
		pass(t, memoryPause)
		expect(t, "awake, memory short", awake(t, y, names), "[app-0 app-1]")
		pass(t, memoryPause)
		expect(t, "awake, memory still short", awake(t, y, names), "[app-1]")
		short.Store(false)
		pass(t, time.Minute)
		expect(t, "awake, enough memory again", awake(t, y, names), "[app-1]")
	})
}
