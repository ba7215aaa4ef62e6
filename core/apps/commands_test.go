package apps

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
)

func TestCommandsOnAnUnknownApp(t *testing.T) {
	y, _ := managerOf(t, &memoryApp{}, newMemoryRecords(record("notes", false)))
	open(t, y)
	for _, where := range []struct{ workspace, name string }{{ws, "other"}, {"ws_other", "notes"}, {"", "notes"}, {ws, ""}, {ws, "../notes"}} {
		for what, do := range map[string]func() error{
			"start":     func() error { _, err := y.Start(t.Context(), where.workspace, where.name); return err },
			"stop":      func() error { _, err := y.Stop(t.Context(), where.workspace, where.name); return err },
			"uninstall": func() error { _, err := y.Uninstall(t.Context(), where.workspace, where.name); return err },
			"app":       func() error { _, err := y.App(where.workspace, where.name); return err },
			"call": func() error {
				_, err := y.Call(t.Context(), where.workspace, where.name, &interact.Call{Request: link.Request{Method: "x"}})
				return err
			},
			"resource": func() error {
				_, err := y.Resource(t.Context(), where.workspace, where.name, Primary, &interact.Call{})
				return err
			},
		} {
			expect(t, fmt.Sprintf("%s %v", what, where), core.CodeOf(do()), core.CodeNotFound)
		}
	}
}

func TestStartingARunningAppChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		wait(t.Context(), time.Second)
		app, err := y.Start(t.Context(), ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "status", app.Status, core.StateRunning)
		expect(t, "launches", len(m.started()), 1)
		expect(t, "uptime", y.Health(ws)[0].Uptime, 1)
		expectEvents(t, events)
	})
}

func TestStoppingAStoppedAppChangesNothing(t *testing.T) {
	y, _ := managerOf(t, &memoryApp{}, newMemoryRecords(record("notes", false)))
	open(t, y)
	app, err := y.Stop(t.Context(), ws, "notes")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "status", app.Status, core.StateStopped)
}

func TestAStartThatFailsLeavesAStoppedAppStopped(t *testing.T) {
	m := &memoryApp{refuses: "the command is missing"}
	records := newMemoryRecords(record("notes", false))
	y, events := managerOf(t, m, records)
	open(t, y)
	_, err := y.Start(t.Context(), ws, "notes")
	expect(t, "code", core.CodeOf(err), core.CodeStartFailed)
	expect(t, "message", core.TextOf(err), "app notes was not started: the command is missing")
	expect(t, "state", state(t, y, "notes"), core.StateStopped)
	r, _ := records.get(ws, "notes")
	expect(t, "the recorded state", r.Running, false)
	expectEvents(t, events)
}

func TestARestartedAppStaysStartedAcrossAServerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		records := newMemoryRecords(record("notes", false))
		y, _ := managerOf(t, m, records)
		open(t, y)
		app, err := y.Start(t.Context(), ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "status", app.Status, core.StateRunning)
		if err := y.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, _ := records.get(ws, "notes")
		expect(t, "the recorded state after Close", r.Running, true)
		again, _ := managerOf(t, m, records)
		open(t, again)
		synctest.Wait()
		expect(t, "state after the restart", state(t, again, "notes"), core.StateRunning)
	})
}

func TestOnlyOneOfConcurrentInstallsOfTheSameNameSucceeds(t *testing.T) {
	m := &memoryApp{takes: 10 * time.Millisecond}
	y, events := managerOf(t, m, newMemoryRecords())
	var all sync.WaitGroup
	codes := make(chan core.Code, 20)
	for range 20 {
		all.Go(func() {
			_, err := y.Install(t.Context(), ws, source.Request{URL: "http://host.test/notes"})
			if err == nil {
				codes <- "won"
				return
			}
			codes <- core.CodeOf(err)
		})
	}
	all.Wait()
	close(codes)
	count := map[core.Code]int{}
	for c := range codes {
		count[c]++
	}
	expect(t, "winners", count["won"], 1)
	expect(t, "rejected with already_installed", count[core.CodeAlreadyInstalled], 19)
	expect(t, "instances", m.alive(), 1)
	expect(t, "failure events", len(failures(events)), 19)
	expect(t, "events", len(events.texts()), 20)
}

func TestDifferentAppsAreInstalledInParallelWithoutBlockingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{takes: 3 * time.Second}
		y, _ := managerOf(t, m, newMemoryRecords())
		before := time.Now()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if _, err := y.Install(t.Context(), ws, source.Request{URL: fmt.Sprintf("http://host.test/app-%d", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		expect(t, "apps seen in the meantime", len(y.List(ws))+len(y.Health(ws))+len(y.Tools(ws)), 0)
		expect(t, "time taken by reads", time.Since(before), 0)
		all.Wait()
		expect(t, "time taken by all installs", time.Since(before), 3*time.Second)
		list := y.List(ws)
		expect(t, "apps", len(list), 10)
		for i, a := range list {
			expect(t, "order", a.Name, fmt.Sprintf("app-%d", i))
		}
	})
}

func TestTwoWorkspacesMayUseTheSameName(t *testing.T) {
	m := &memoryApp{tools: []string{"echo"}}
	y, events := managerOf(t, m, newMemoryRecords())
	for _, w := range []string{ws, "ws_b"} {
		if _, err := y.Install(t.Context(), w, source.Request{URL: "http://host.test/notes"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := y.Uninstall(t.Context(), "ws_b", "notes"); err != nil {
		t.Fatal(err)
	}
	expect(t, "tools of the other workspace", len(y.Tools(ws)), 1)
	expect(t, "tools of the workspace without the app", len(y.Tools("ws_b")), 0)
	for i, want := range []string{ws, "ws_b", "ws_b"} {
		expect(t, "workspace of an event", events.all()[i].Workspace, want)
	}
}

func TestAnInstallWhoseRequestIsCancelledIsRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{hangs: true}
		records := newMemoryRecords()
		y, events := managerOf(t, m, records)
		ctx, leave := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := y.Install(ctx, ws, source.Request{URL: "http://host.test/notes"})
			got <- err
		}()
		synctest.Wait()
		leave()
		expect(t, "code", core.CodeOf(<-got), core.CodeInstallFailed)
		_, recorded := records.get(ws, "notes")
		expect(t, "recorded", recorded, false)
		m.set(func(m *memoryApp) { m.hangs = false })
		if _, err := y.Install(t.Context(), ws, source.Request{URL: "http://host.test/notes"}); err != nil {
			t.Fatalf("the name is still taken: %v", err)
		}
		expectEvents(t, events, core.EventBundleInstallFailed, core.EventBundleInstalled)
	})
}

func TestTheNameSystemCannotBeUsed(t *testing.T) {
	y, _ := managerOf(t, &memoryApp{}, newMemoryRecords())
	for _, r := range []source.Request{{URL: "http://host.test/System"}, {URL: "http://host.test/mcp", ServerName: "system"}} {
		_, err := y.Install(t.Context(), ws, r)
		expect(t, "code", core.CodeOf(err), core.CodeAlreadyInstalled)
	}
}

func TestNothingIsStartedOnceTheManagerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{hangs: true}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", false)))
		open(t, y)
		got := make(chan error, 2)
		go func() {
			_, err := y.Install(t.Context(), ws, source.Request{URL: "http://host.test/new"})
			got <- err
		}()
		go func() {
			_, err := y.Start(t.Context(), ws, "notes")
			got <- err
		}()
		synctest.Wait()
		if err := y.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if <-got == nil {
				t.Error("a command succeeded although it hung")
			}
		}
		_, err := y.Install(t.Context(), ws, source.Request{URL: "http://host.test/late"})
		expect(t, "code", core.CodeOf(err), core.CodeUnavailable)
		_, err = y.Start(t.Context(), ws, "notes")
		expect(t, "code", core.CodeOf(err), core.CodeUnavailable)
	})
}

func TestStoppingAnAppEndsItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, events := managerOf(t, &memoryApp{}, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		got := make(chan error, 1)
		go func() { got <- call(t, y, "hang") }()
		synctest.Wait()
		if _, err := y.Stop(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		expect(t, "code", core.CodeOf(<-got), core.CodeUnavailable)
		expectEvents(t, events, "bundle.stopped")
	})
}

func TestACommandDuringAnInstallWaitsForTheSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := managerOf(t, m, newMemoryRecords())
		stopped := make(chan error, 1)
		var once sync.Once
		defer y.Watch(ws, func(core.Kind) {
			once.Do(func() { // the app has just become visible
				go func() {
					_, err := y.Stop(t.Context(), ws, "notes")
					stopped <- err
				}()
				wait(t.Context(), time.Second)
			})
		})()
		if _, err := y.Install(t.Context(), ws, source.Request{URL: "http://host.test/notes"}); err != nil {
			t.Fatal(err)
		}
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect(t, "state", state(t, y, "notes"), core.StateStopped)
		expect(t, "instances", m.alive(), 0)
	})
}

func TestCloseWaitsForAnInstallThatCannotBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{ends: time.Second}
		records := newMemoryRecords()
		records.slow = time.Second
		y, _ := managerOf(t, m, records)
		installed := make(chan error, 1)
		go func() {
			_, err := y.Install(t.Context(), ws, source.Request{URL: "http://host.test/notes"})
			installed <- err
		}()
		synctest.Wait() // the record is being written
		if err := y.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(t, "instances", m.alive(), 0)
		if err := <-installed; err != nil {
			t.Errorf("the install was recorded, but returned %v", err)
		}
	})
}

func TestACallerWaitsForTheFirstStartOfAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{takes: 3 * time.Second, tools: []string{"add"}}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true), record("idle", false)))
		open(t, y)
		arrives := func(name string, code core.Code, after time.Duration) {
			t.Helper()
			began := time.Now()
			err := y.AwaitOffer(t.Context(), ws, name)
			if err == nil && code != "" || err != nil && core.CodeOf(err) != code {
				t.Errorf("%s: %v", name, err)
			}
			expect(t, name+" after", time.Since(began), after)
		}
		arrives("none", "", 0)
		arrives("idle", core.CodeUnavailable, 0)
		arrives("notes", "", 3*time.Second)
		arrives("notes", "", 0) // the lists of a running app are known
		m.set(func(m *memoryApp) { m.hangs = true })
		m.kill()
		synctest.Wait()
		arrives("notes", "", 0) // they remain known during the restart

		late, _ := managerOf(t, &memoryApp{hangs: true}, newMemoryRecords(record("notes", true)))
		open(t, late)
		arrivesLate := time.Now()
		err := late.AwaitOffer(t.Context(), ws, "notes")
		expect(t, "code for an app that hangs", core.CodeOf(err), core.CodeUnavailable)
		expect(t, "time until it gave up", time.Since(arrivesLate), 10*time.Second)

		dying, _ := managerOf(t, &memoryApp{refuses: "no"}, newMemoryRecords(record("notes", true)))
		open(t, dying)
		err = dying.AwaitOffer(t.Context(), ws, "notes")
		if core.CodeOf(err) != core.CodeUnavailable {
			t.Errorf("an app that dies: %v", err)
		}
	})
}
