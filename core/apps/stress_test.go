package apps

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// Commands, crashes and calls in any order and at the same time cause no illegal state change, no instance without an
// owner, and no event in another workspace.
func TestCommandsAndCrashesInAnyOrder(t *testing.T) {
	m := &memoryApp{tools: []string{"echo"}}
	log := &testkit.Log{}
	records := newMemoryRecords()
	events := newMemoryEvents()
	y := New(Options{
		Home: t.TempDir(), Records: records, Events: events, RestartWait: 20 * time.Millisecond,
		Policy: &Policy{Delays: []time.Duration{0, time.Millisecond}, HealthyAfter: 2 * time.Millisecond, RemoteMax: 4 * time.Millisecond},
		Logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Error}),
	})
	y.start = m.launch
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(worker)))
			for range 400 {
				w := []string{ws, "ws_b", "ws_c"}[r.IntN(3)]
				name := fmt.Sprintf("app-%d", r.IntN(3))
				switch r.IntN(8) {
				case 0, 1:
					_, _ = y.Install(t.Context(), w, source.Request{URL: "http://host.test/" + name})
				case 2:
					_, _ = y.Start(t.Context(), w, name)
				case 3:
					_, _ = y.Stop(t.Context(), w, name)
				case 4:
					_, _ = y.Uninstall(t.Context(), w, name)
				case 5:
					_, _ = y.Call(t.Context(), w, name, &interact.Call{Request: link.Request{Method: "x"}})
				case 6:
					m.set(func(m *memoryApp) {
						if m.refuses = ""; r.IntN(4) == 0 {
							m.refuses = "no"
						}
						if m.current != nil {
							m.current.die()
						}
					})
				case 7:
					if len(y.Tools(w)) > len(y.List(w))+3 || len(y.Health(w)) > 3 {
						t.Error("apps that do not exist are shown")
					}
				}
			}
		})
	}
	all.Wait()
	for _, w := range []string{ws, "ws_b", "ws_c"} {
		for _, a := range y.List(w) {
			if _, ok := records.get(w, a.Name); !ok {
				t.Errorf("%s of %s is shown but not recorded", a.Name, w)
			}
		}
	}
	if err := y.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "instances left", m.alive(), 0)
	if strings.Contains(log.String(), "illegal") {
		t.Errorf("the log reports an illegal change: %s", log.String())
	}
}

// Each kill causes exactly one crashed and one recovered event, and each call in flight fails within a second.
func TestManyKillsOfARealBundle(t *testing.T) {
	kills := 20
	if testing.Short() {
		kills = 3
	}
	home := t.TempDir()
	y, events := realManager(t, home, newMemoryRecords(), func(o *Options) {
		o.Policy = &Policy{Delays: []time.Duration{0, time.Second}, HealthyAfter: time.Nanosecond}
	})
	install(t, y, source.Request{Path: bundleDir(t, "@test/notes", modeNormal, nil)})
	var slowestError, slowestStart time.Duration
	for n := 1; n <= kills; n++ {
		pid := look(t, y, "notes").PID
		inFlight := hang(t, y, home, "notes")
		killed := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		end := <-inFlight
		expect(t, "code of the call in flight", core.CodeOf(end.err), core.CodeUnavailable)
		slowestError = max(slowestError, end.at.Sub(killed))
		if err := events.wait(t.Context(), "bundle.recovered", n); err != nil {
			t.Fatal(err)
		}
		slowestStart = max(slowestStart, time.Since(killed))
	}
	want := []string{"bundle.installed"}
	for range kills {
		want = append(want, "bundle.crashed 1", "bundle.recovered")
	}
	expectEvents(t, events, want...)
	t.Logf("%d kills: at worst, the call in flight failed after %v and the app ran again after %v", kills, slowestError, slowestStart)
	if slowestError > 10*time.Second || slowestStart > 30*time.Second {
		t.Errorf("too slow: %v, %v", slowestError, slowestStart)
	}
}

// Many apps die as soon as they are started. Each gets exactly three attempts, and readers of the apps' state never
// wait for any of them.
func TestManyCrashLoopsAtOnce(t *testing.T) {
	apps := 15
	if testing.Short() {
		apps = 5
	}
	dir := bundleDir(t, "@test/dying", modeDying, nil)
	m, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var records []core.Installation
	for i := range apps {
		r := record(fmt.Sprintf("app-%02d", i), true)
		r.Remote, r.Manifest, r.Dir = nil, m, dir
		records = append(records, r)
	}
	y, events := realManager(t, t.TempDir(), newMemoryRecords(records...), func(o *Options) {
		o.Policy = &Policy{Delays: []time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond}, HealthyAfter: time.Minute}
	})
	open(t, y)
	dead := make(chan error, 1)
	go func() { dead <- events.wait(t.Context(), "bundle.dead", apps) }()
	var worst time.Duration
	for reading := true; reading; {
		before := time.Now()
		expect(t, "apps in the result", len(y.Health(ws)), apps)
		worst = max(worst, time.Since(before))
		select {
		case err := <-dead:
			if err != nil {
				t.Fatal(err)
			}
			reading = false
		case <-time.After(time.Millisecond):
		}
	}
	t.Logf("%d crash loops: reading the health took at most %v", apps, worst)
	perApp := map[string][]string{}
	for _, e := range events.all() {
		switch d := e.Data.(type) {
		case core.BundleCrashed:
			perApp[d.Name] = append(perApp[d.Name], eventText(e.Event))
		case core.BundleDead:
			perApp[d.Name] = append(perApp[d.Name], eventText(e.Event))
		}
	}
	expect(t, "apps with events", len(perApp), apps)
	for name, got := range perApp {
		if want := []string{"bundle.crashed 1", "bundle.crashed 2", "bundle.crashed 3", "bundle.dead"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
