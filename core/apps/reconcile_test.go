package apps

import (
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link"
)

func notesByURL() source.Request { return source.Request{URL: "http://host.test/notes"} }

func TestACommandAppliesToAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		a, b, c := h.replica(t), h.replica(t), h.replica(t)
		wantAll := func(what string, want core.State) {
			t.Helper()
			synctest.Wait()
			for name, r := range map[string]*memoryReplica{"a": a, "b": b, "c": c} {
				expect(t, what+": state on "+name, state(t, r.Manager, "notes"), want)
				expect(t, what+": instances on "+name, r.app.alive(), map[core.State]int{core.StateRunning: 1}[want])
			}
		}
		a.app.tools, b.app.tools, c.app.tools = []string{"add"}, []string{"add"}, []string{"add"}
		if _, err := a.Install(t.Context(), ws, notesByURL()); err != nil {
			t.Fatal(err)
		}
		wantAll("install", core.StateRunning)
		expect(t, "tools on another server", len(c.Tools(ws)), 1)
		if _, err := b.Stop(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		wantAll("stop", core.StateStopped)
		if _, err := c.Start(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		wantAll("start", core.StateRunning)
		if _, err := b.Uninstall(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, r := range []*memoryReplica{a, b, c} {
			expect(t, "apps after the uninstall", len(r.List(ws)), 0)
			expect(t, "instances after the uninstall", r.app.alive(), 0)
		}
		// The bus carries events to all servers, so a server that reconciles must not publish them again.
		expectEvents(t, a.events, "bundle.installed")
		expectEvents(t, b.events, "bundle.stopped", "bundle.uninstalled")
		expectEvents(t, c.events, "bundle.started")
	})
}

func TestIfServersInstallTheSameNameOneSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		var all []*memoryReplica
		for range 5 {
			r := h.replica(t)
			r.app.takes = time.Second // all of them install at the same time
			all = append(all, r)
		}
		var installing sync.WaitGroup
		codes := make(chan core.Code, len(all))
		for _, r := range all {
			installing.Go(func() {
				_, err := r.Install(t.Context(), ws, notesByURL())
				if err == nil {
					codes <- "won"
					return
				}
				codes <- core.CodeOf(err)
			})
		}
		installing.Wait()
		close(codes)
		count := map[core.Code]int{}
		for c := range codes {
			count[c]++
		}
		expect(t, "winners", count["won"], 1)
		expect(t, "rejected with already_installed", count[core.CodeAlreadyInstalled], len(all)-1)
		wait(t.Context(), 5*time.Second)
		synctest.Wait()
		published, failed := 0, 0
		for _, r := range all {
			expect(t, "state", state(t, r.Manager, "notes"), core.StateRunning)
			expect(t, "instances", r.app.alive(), 1)
			published += len(r.events.texts()) - len(failures(r.events))
			failed += len(failures(r.events))
		}
		expect(t, "events", published, 1)
		expect(t, "failure events", failed, len(all)-1)
		_, err := all[0].Install(t.Context(), ws, notesByURL())
		expect(t, "code of a later install", core.CodeOf(err), core.CodeAlreadyInstalled)
	})
}

func TestEachServerHasItsOwnStateOfAnAppAndAStartAppliesToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(record("notes", true))
		a, b := h.replica(t), h.replica(t)
		synctest.Wait()
		b.app.set(func(m *memoryApp) { m.refuses = "out of memory" })
		b.app.kill()
		wait(t.Context(), time.Minute)
		expect(t, "state where it crashed", state(t, b.Manager, "notes"), core.StateDead)
		expect(t, "state on the other server", state(t, a.Manager, "notes"), core.StateRunning)
		expect(t, "restarts on the other server", a.Health(ws)[0].RestartCount, 0)
		expectEvents(t, a.events)

		b.app.set(func(m *memoryApp) { m.refuses = "" })
		b.seat.changes <- core.Change{Kind: core.ChangeAll} // no one changed the app
		synctest.Wait()
		expect(t, "state after an unrelated notification", state(t, b.Manager, "notes"), core.StateDead)
		if _, err := a.Start(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect(t, "state after a start where it is running", state(t, b.Manager, "notes"), core.StateRunning)
		expect(t, "launches on the other server", len(a.app.started()), 1)
	})
}

func TestAllAppsAreReconciledAfterChangesWereMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(record("goes", true), record("stays", true), record("stops", true))
		a := h.replica(t)
		synctest.Wait()
		h.rows = map[interact.AppRef]core.Installation{} // without any notification
		stopped := record("stops", false)
		for _, r := range []core.Installation{record("stays", true), stopped, record("comes", true)} {
			h.rows[interact.AppRef{Workspace: ws, Name: r.Name}] = r
		}
		a.seat.outage(2)
		a.seat.changes <- core.Change{Kind: core.ChangeAll}
		wait(t.Context(), 10*retryPause)
		synctest.Wait()
		for name, want := range map[string]core.State{"stays": core.StateRunning, "stops": core.StateStopped, "comes": core.StateRunning} {
			expect(t, name, state(t, a.Manager, name), want)
		}
		expect(t, "apps", len(a.List(ws)), 3)
		expect(t, "launches", len(a.app.started()), 4) // what has not changed was left alone
	})
}

func TestACommandOnAnAppThatAnotherServerRemovedIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(record("notes", true))
		a := h.replica(t)
		synctest.Wait()
		delete(h.rows, interact.AppRef{Workspace: ws, Name: "notes"})
		_, err := a.Stop(t.Context(), ws, "notes")
		expect(t, "code of stop", core.CodeOf(err), core.CodeNotFound)
		_, err = a.Start(t.Context(), ws, "notes")
		expect(t, "code of start", core.CodeOf(err), core.CodeNotFound)
		expect(t, "rows", len(h.rows), 0)
	})
}

func TestAnAppThatWasReplacedUnderItsNameIsReplacedEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		a, b := h.replica(t), h.replica(t)
		if _, err := a.Install(t.Context(), ws, notesByURL()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.seat.outage(1) // so that it sees both changes at once
		if _, err := a.Uninstall(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Install(t.Context(), ws, source.Request{URL: "http://elsewhere.test/notes"}); err != nil {
			t.Fatal(err)
		}
		wait(t.Context(), 3*retryPause)
		synctest.Wait()
		app, err := b.App(ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "what runs on the other server", app.BundleName, "http://elsewhere.test/notes")
		expect(t, "its state", app.Status, core.StateRunning)
		expect(t, "instances", b.app.alive(), 1)
	})
}

func TestACallWaitsWhileAnAppIsReplacedByAnotherServer(t *testing.T) {
	for name, running := range map[string]bool{"and runs on": true, "and stays stopped": false} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(record("notes", true))
			a, b := h.replica(t), h.replica(t)
			synctest.Wait()
			b.app.set(func(m *memoryApp) { m.ends = 5 * time.Second })
			changed := record("notes", running)
			changed.Env = map[string]core.Secret{"COLOUR": "blue"}
			h.rows[interact.AppRef{Workspace: ws, Name: "notes"}] = changed
			b.seat.changes <- core.Change{Kind: core.ChangeApp, Workspace: ws, Name: "notes"}
			synctest.Wait()
			expect(t, name+": the state while the old instance ends", state(t, b.Manager, "notes"), core.StateStopped)
			began := time.Now()
			result, err := b.Call(t.Context(), ws, "notes", &interact.Call{Request: link.Request{Method: "x", Params: json.RawMessage(`{"a":1}`)}})
			if running {
				if err != nil {
					t.Fatalf("%s: the call: %v", name, err)
				}
				expect(t, "the result", string(result), `{"a":1}`)
				expect(t, "the call waited", time.Since(began), 5*time.Second)
				expect(t, "what the app was started with", b.app.specs[1].Record.Env["COLOUR"], core.Secret("blue"))
			} else {
				expect(t, name+": the code of the call", core.CodeOf(err), core.CodeUnavailable)
			}
			expect(t, name+": launches on the other server", len(a.app.started()), 1)
		})
	}
}

func TestAnUninstallOnAnotherServerCancelsAHangingStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(record("notes", false))
		a, b := h.replica(t), h.replica(t)
		synctest.Wait()
		b.app.set(func(m *memoryApp) { m.hangs = true })
		var starting sync.WaitGroup
		starting.Go(func() {
			_, err := b.Start(t.Context(), ws, "notes")
			expect(t, "code of the start", core.CodeOf(err), core.CodeConflict)
		})
		synctest.Wait()
		before := time.Now()
		if _, err := a.Uninstall(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		starting.Wait()
		synctest.Wait()
		expect(t, "apps", len(b.List(ws)), 0)
		expect(t, "waited", time.Since(before) < time.Second, true)
	})
}

func TestADeclaredAppIsInstalledByOneOfTheServersThatDeclareIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		remote := remoteRecord("mine", true)
		d := map[string]config.App{"mine": {Source: remote.Source, Remote: remote.Remote}}
		a, b := h.replica(t), h.replica(t)
		a.Reconfigure(nil, d)
		b.Reconfigure(nil, d)
		synctest.Wait()
		for _, r := range []*memoryReplica{a, b} {
			expect(t, "state", state(t, r.Manager, "mine"), core.StateRunning)
			expect(t, "instances", r.app.alive(), 1)
		}
		expect(t, "events", len(a.events.texts())+len(b.events.texts()), 1)
		changed := d["mine"]
		changed.Env = map[string]core.Secret{"COLOUR": "blue"}
		a.Reconfigure(nil, map[string]config.App{"mine": changed})
		synctest.Wait()
		expect(t, "launches on the server that followed", len(b.app.started()), 2)
		expect(t, "what it was started with", b.app.specs[1].Record.Env["COLOUR"], core.Secret("blue"))
	})
}

func TestACommandSeesWhatAnotherServerHasJustRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub()
		a, b := h.replica(t), h.replica(t)
		b.seat.deaf = true // the notification has not arrived yet
		b.app.tools = []string{"add"}
		b.app.takes = time.Second
		if _, err := a.Install(t.Context(), ws, notesByURL()); err != nil {
			t.Fatal(err)
		}
		if err := b.AwaitOffer(t.Context(), ws, "notes"); err != nil || len(b.Tools(ws)) != 1 {
			t.Errorf("a call to the app: %v, %d tools", err, len(b.Tools(ws)))
		}
		if err := b.AwaitOffer(t.Context(), ws, "none"); err != nil {
			t.Errorf("a call to an app that no server has: %v", err)
		}
		if _, err := b.Install(t.Context(), ws, notesByURL()); core.CodeOf(err) != core.CodeAlreadyInstalled {
			t.Errorf("a second install: %v", err)
		}
		if _, err := a.Uninstall(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Install(t.Context(), ws, notesByURL()); err != nil {
			t.Errorf("an install after the uninstall: %v", err)
		}
		if _, err := a.Uninstall(t.Context(), ws, "notes"); err != nil { // a receives notifications, but may lag behind
			t.Fatal(err)
		}
		_, err := b.Stop(t.Context(), ws, "notes")
		expect(t, "code of a stop after the uninstall", core.CodeOf(err), core.CodeNotFound)
		expect(t, "apps", len(b.List(ws)), 0)
		b.seat.outage(1)
		_, err = b.Start(t.Context(), ws, "notes")
		expect(t, "code while the records are unavailable", core.CodeOf(err), core.CodeStartFailed)
	})
}
