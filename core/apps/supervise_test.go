package apps

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

const ws = core.DefaultWorkspaceID

// record returns an installed app without files that runs as a process.
func record(name string, running bool) core.Installation {
	return core.Installation{
		Workspace: ws, Name: name, BundleName: "@test/" + name, Version: "7.7.7", Running: running,
		Source: core.Source{Kind: core.SourcePath, Ref: "/" + name},
	}
}

// remoteRecord returns an installed app that is a remote server.
func remoteRecord(name string, running bool) core.Installation {
	url := "http://" + name + ".test/mcp"
	return core.Installation{
		Workspace: ws, Name: name, BundleName: url, Running: running, Source: core.Source{Kind: core.SourceURL, Ref: url},
		Remote: &core.Remote{URL: url, Type: "streamable-http", Auth: core.RemoteAuth{Type: "none"}},
	}
}

// managerOf returns a manager without jitter whose apps are all m.
func managerOf(t *testing.T, m *memoryApp, records *memoryRecords) (*Manager, *memoryEvents) {
	t.Helper()
	events := newMemoryEvents()
	policy := DefaultPolicy()
	policy.Jitter = 0
	y := New(Options{Home: t.TempDir(), Records: records, Events: events, Policy: &policy})
	y.start = m.launch
	t.Cleanup(func() {
		if err := y.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if m.alive() != 0 {
			t.Errorf("%d instances remain after Close", m.alive())
		}
	})
	return y, events
}

func open(t *testing.T, y *Manager) {
	t.Helper()
	if err := y.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, y *Manager, name string) core.State {
	t.Helper()
	a, err := y.App(ws, name)
	if err != nil {
		t.Fatal(err)
	}
	return a.Status
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func expectApp(t *testing.T, what string, got, want core.App) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func expectEvents(t *testing.T, m *memoryEvents, want ...string) {
	t.Helper()
	if got := m.texts(); !slices.Equal(got, want) {
		t.Errorf("events:\n got %q\nwant %q", got, want)
	}
}

func TestAKilledAppPublishesOneCrashAndOneRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		expect(t, "state after opening", state(t, y, "notes"), core.StateRunning)
		m.kill()
		synctest.Wait()
		expect(t, "state after the kill", state(t, y, "notes"), core.StateRunning)
		expectEvents(t, events, "bundle.crashed 1", "bundle.recovered")
		for _, e := range events.all() {
			expect(t, "the event's workspace", e.Workspace, ws)
			expect(t, "time since the kill", time.Since(e.at), 0)
		}
		expect(t, "restart count", y.Health(ws)[0].RestartCount, 1)
		expect(t, "instances", m.alive(), 1)
	})
}

func TestAnAppThatKeepsDyingIsDeadAfterThreeAttemptsOnThePolicysSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		m.set(func(m *memoryApp) { m.refuses = "the process exited with status 7" })
		m.kill()
		synctest.Wait()
		expect(t, "state while attempts are left", state(t, y, "notes"), core.StateCrashed)
		expect(t, "tools while crashed", len(y.Tools(ws)), 1)
		wait(t.Context(), time.Minute)
		expect(t, "state at the end", state(t, y, "notes"), core.StateDead)
		expect(t, "tools when dead", len(y.Tools(ws)), 0)
		expectEvents(t, events, "bundle.crashed 1", "bundle.crashed 2", "bundle.crashed 3", "bundle.dead")
		starts := m.started()
		if len(starts) != 4 {
			t.Fatalf("started %d times, want one start and three restarts", len(starts))
		}
		for i, want := range []time.Duration{0, time.Second, 5 * time.Second} {
			expect(t, "time of an attempt after the crash", starts[i+1].Sub(starts[0]), want)
		}
		dead, _ := events.all()[3].Data.(core.BundleDead)
		if !strings.Contains(dead.Message, "3 restart attempts") || !strings.Contains(dead.Message, "status 7") {
			t.Errorf("the bundle.dead message should mention both the attempts and the reason: %q", dead.Message)
		}
		expect(t, "restart count", y.Health(ws)[0].RestartCount, 3)
	})
}

func TestAnAppWithoutRoomIsRetriedUntilThereIsSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"find"}, refuses: "the running apps may use all threads", busy: true}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		wait(t.Context(), 10*time.Minute)
		expect(t, "state without room", state(t, y, "notes"), core.StateCrashed)
		m.set(func(m *memoryApp) { m.refuses = "" })
		wait(t.Context(), 10*time.Minute)
		expect(t, "state with room", state(t, y, "notes"), core.StateRunning)
	})
}

func TestACrashBeforeTheAppIsHealthyAgainAddsToTheCount(t *testing.T) {
	for _, c := range []struct {
		name string
		up   time.Duration
		want []string
	}{
		{"just recovered", 55 * time.Second, []string{"bundle.crashed 1", "bundle.recovered", "bundle.crashed 2", "bundle.recovered", "bundle.crashed 3", "bundle.recovered", "bundle.dead"}},
		{"healthy again", time.Minute, []string{"bundle.crashed 1", "bundle.recovered", "bundle.crashed 1", "bundle.recovered", "bundle.crashed 1", "bundle.recovered", "bundle.crashed 1", "bundle.recovered"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memoryApp{}
				y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
				open(t, y)
				synctest.Wait()
				for range 4 {
					wait(t.Context(), c.up)
					m.kill()
					synctest.Wait()
					for state(t, y, "notes") == core.StateCrashed {
						wait(t.Context(), 100*time.Millisecond)
					}
				}
				expectEvents(t, events, c.want...)
			})
		})
	}
}

func TestAnAppThatFailsAtServerStartIsRestartedLikeACrashedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{refuses: "the command is missing"}
		y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		synctest.Wait()
		expect(t, "state", state(t, y, "notes"), core.StateCrashed)
		m.set(func(m *memoryApp) { m.refuses = "" })
		wait(t.Context(), 2*time.Second)
		expect(t, "state", state(t, y, "notes"), core.StateRunning)
		expectEvents(t, events, "bundle.crashed 1", "bundle.crashed 2", "bundle.recovered")
	})
}

func TestAnAppThatWasStoppedStaysStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		records := newMemoryRecords(record("stopped", false), record("notes", true))
		y, events := managerOf(t, m, records)
		open(t, y)
		synctest.Wait()
		expect(t, "an app that was stopped earlier", state(t, y, "stopped"), core.StateStopped)
		m.set(func(m *memoryApp) { m.refuses = "no" })
		m.kill()
		wait(t.Context(), 500*time.Millisecond) // between the first attempt and the second
		app, err := y.Stop(t.Context(), ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "status returned by Stop", app.Status, core.StateStopped)
		wait(t.Context(), time.Hour)
		expect(t, "state", state(t, y, "notes"), core.StateStopped)
		expect(t, "starts", len(m.started()), 2)
		expectEvents(t, events, "bundle.crashed 1", "bundle.crashed 2", "bundle.stopped")
		r, _ := records.get(ws, "notes")
		expect(t, "the recorded state", r.Running, false)
		expect(t, "uptime of a stopped app", y.Health(ws)[0].Uptime, 0)
	})
}

func TestStartingADeadAppResetsItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{refuses: "no"}
		y, events := managerOf(t, m, newMemoryRecords(record("notes", true)))
		open(t, y)
		wait(t.Context(), time.Minute)
		expect(t, "state", state(t, y, "notes"), core.StateDead)
		_, err := y.Start(t.Context(), ws, "notes")
		expect(t, "code of a start that fails", core.CodeOf(err), core.CodeStartFailed)
		expect(t, "state after a start that failed", state(t, y, "notes"), core.StateDead)
		m.set(func(m *memoryApp) { m.refuses = "" })
		app, err := y.Start(t.Context(), ws, "notes")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "status returned by Start", app.Status, core.StateRunning)
		m.set(func(m *memoryApp) { m.refuses = "again" })
		m.kill()
		wait(t.Context(), time.Minute)
		expectEvents(t, events, "bundle.crashed 1", "bundle.crashed 2", "bundle.crashed 3", "bundle.dead",
			"bundle.started", "bundle.crashed 1", "bundle.crashed 2", "bundle.crashed 3", "bundle.dead")
	})
}

func TestStoppingCancelsAPendingStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{hangs: true}
		y, _ := managerOf(t, m, newMemoryRecords(record("notes", false)))
		open(t, y)
		started := make(chan error, 1)
		go func() {
			_, err := y.Start(t.Context(), ws, "notes")
			started <- err
		}()
		synctest.Wait()
		expect(t, "state", state(t, y, "notes"), core.StateStarting)
		before := time.Now()
		if _, err := y.Stop(t.Context(), ws, "notes"); err != nil {
			t.Fatal(err)
		}
		expect(t, "time", time.Since(before), 0)
		expect(t, "code of the start", core.CodeOf(<-started), core.CodeConflict)
		expect(t, "state", state(t, y, "notes"), core.StateStopped)
	})
}

func TestAppsThatHangDoNotDelayTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging, good := &memoryApp{hangs: true}, &memoryApp{}
		var records []core.Installation
		for _, name := range strings.Split("abcdefghijklmnop", "") {
			records = append(records, record("hangs-"+name, true))
		}
		records = append(records, record("good", true))
		y, _ := managerOf(t, good, newMemoryRecords(records...))
		y.start = func(ctx context.Context, b instance.Spec) (instance.Instance, error) {
			if b.Record.Name == "good" {
				return good.launch(ctx, b)
			}
			return hanging.launch(ctx, b)
		}
		before := time.Now()
		open(t, y)
		expect(t, "time of Open", time.Since(before), 0)
		wait(t.Context(), 4*time.Second+time.Millisecond) // at most two batches of eight hanging apps
		expect(t, "state of the app that works", state(t, y, "good"), core.StateRunning)
	})
}

func TestIllegalTransitionsAreRefused(t *testing.T) {
	y, _ := managerOf(t, &memoryApp{}, newMemoryRecords())
	states := []core.State{core.StateStarting, core.StateRunning, core.StateCrashed, core.StateDead, core.StateStopped}
	for _, from := range states {
		for _, to := range states {
			a := y.newApp(record("notes", true))
			v := *a.now.Load()
			v.state = from
			a.now.Store(&v)
			legal := from == to || from.Can(to)
			expect(t, string(from+" to "+to), a.transition(to, nil), legal)
			if !legal {
				expect(t, "state after a refusal", a.now.Load().state, from)
			}
		}
	}
}

func TestTheDefaultPolicyHasThreeAttempts(t *testing.T) {
	for range 200 {
		tries := attempts{Policy: DefaultPolicy()}
		for i, least := range []time.Duration{0, time.Second, 4 * time.Second} {
			n, delay, ok := tries.Next(0)
			if !ok || n != i+1 || delay < least || delay > least+least/10 {
				t.Fatalf("attempt %d: got %d after %v (%v), want %v plus at most 10%%", i+1, n, delay, ok, least)
			}
		}
		if _, _, ok := tries.Next(59 * time.Second); ok {
			t.Fatal("a fourth attempt before the app counts as healthy")
		}
		if n, _, ok := tries.Next(time.Minute); !ok || n != 1 {
			t.Fatal("the counter was not reset although the app counts as healthy")
		}
	}
}

func TestARecordThatCannotBeWrittenChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{}
		records := newMemoryRecords(record("notes", true), record("off", false))
		y, events := managerOf(t, m, records)
		open(t, y)
		synctest.Wait()
		records.fill(true)
		_, err := y.Stop(t.Context(), ws, "notes")
		expect(t, "code of stop", core.CodeOf(err), core.CodeStopFailed)
		expect(t, "state", state(t, y, "notes"), core.StateRunning)
		_, err = y.Uninstall(t.Context(), ws, "notes")
		expect(t, "code of uninstall", core.CodeOf(err), core.CodeUninstallFailed)
		expect(t, "state", state(t, y, "notes"), core.StateRunning)
		_, err = y.Start(t.Context(), ws, "off")
		expect(t, "code of start", core.CodeOf(err), core.CodeStartFailed)
		expect(t, "state", state(t, y, "off"), core.StateStopped)
		_, err = y.Install(t.Context(), ws, source.Request{URL: "http://new.test/new"})
		expect(t, "code of install", core.CodeOf(err), core.CodeInstallFailed)
		if !errors.Is(err, errFull) {
			t.Errorf("the cause is lost: %v", err)
		}
		records.fill(false)
		expect(t, "apps", len(y.List(ws)), 2)
		expect(t, "instances", m.alive(), 1)
		expectEvents(t, events, core.EventBundleInstallFailed)
	})
}

// restless is an instance that announces a change whenever its lists are read.
type restless struct {
	instance.Instance
	*instance.ListChanges
	done chan struct{}
}

func (r restless) Done() <-chan struct{} { return r.done }

func (r restless) AddListChange(kind core.Kind)  { r.ListChanges.AddListChange(kind) }
func (r restless) ListsChanged() <-chan struct{} { return r.ListChanges.ListsChanged() }
func (r restless) TakeListChanges() []core.Kind  { return r.ListChanges.TakeListChanges() }

func TestAnAppThatConstantlyAnnouncesChangesIsReadAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := &app{log: hclog.New(&hclog.LoggerOptions{Output: &log})}
		in := restless{ListChanges: instance.NewListChanges(), done: make(chan struct{})}
		var reads atomic.Int32
		var announcing atomic.Bool
		announcing.Store(true)
		go a.followLists(t.Context(), in, func([]core.Kind) {
			if reads.Add(1); announcing.Load() {
				in.AddListChange(core.KindTools)
			}
		})
		in.AddListChange(core.KindTools)
		<-time.After(time.Hour)
		synctest.Wait()
		if n := reads.Load(); n < 60 || n > 80 {
			t.Errorf("read %d times in an hour", n)
		}
		if n := strings.Count(log.String(), "keeps announcing"); n != 1 {
			t.Errorf("warned %d times: %s", n, log.String())
		}
		announcing.Store(false)
		<-time.After(5 * time.Minute)
		synctest.Wait()
		reads.Store(0)
		for range 3 {
			in.AddListChange(core.KindTools)
			<-time.After(time.Second)
			synctest.Wait()
		}
		if n := reads.Load(); n != 3 {
			t.Errorf("after a quiet period, 3 changes one second apart caused %d reads, want 3", n)
		}
		close(in.done)
	})
}
