package apps

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

func TestACallToAnAppThatIsNotRunningSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memoryApp{tools: []string{"echo"}}
		y, _ := managerOf(t, m, newMemoryRecords(record("fake", true)))
		open(t, y)
		synctest.Wait()
		if _, err := y.Stop(t.Context(), ws, "fake"); err != nil {
			t.Fatal(err)
		}
		err := y.AwaitOffer(t.Context(), ws, "fake")
		if core.CodeOf(err) != core.CodeUnavailable || core.TextOf(err) != `app "fake" is stopped; start it first` {
			t.Errorf("waiting for a stopped app returned %v", err)
		}
		if err := y.AwaitOffer(t.Context(), ws, "other"); err != nil {
			t.Errorf("waiting for an app that is not installed returned %v", err)
		}
		if _, err := y.Start(t.Context(), ws, "fake"); err != nil {
			t.Fatal(err)
		}
		if err := y.AwaitOffer(t.Context(), ws, "fake"); err != nil {
			t.Errorf("waiting for a running app without the tool returned %v", err)
		}
		m.set(func(m *memoryApp) { m.refuses = "the process exited with status 7" })
		m.kill()
		wait(t.Context(), time.Minute)
		err = y.AwaitOffer(t.Context(), ws, "fake")
		if core.CodeOf(err) != core.CodeUnavailable || !strings.HasPrefix(core.TextOf(err), `app "fake" is dead after too many failed restarts: `) ||
			!strings.HasSuffix(core.TextOf(err), "the process exited with status 7; fix the cause, then start it") {
			t.Errorf("waiting for a dead app returned %v", err)
		}
		expect(t, "why it is dead", y.List(ws)[0].LastError, "the process exited with status 7")
	})
}

func TestTheReasonInAnErrorIsOneShortLine(t *testing.T) {
	v := &view{failure: failureOf(core.Errorf(core.CodeUnavailable, "the process exited\n\twith status 7 %s", strings.Repeat("x", 2*reasonLength)))}
	if got := v.because(); !strings.HasPrefix(got, ": the process exited with status 7 xxx") || len([]rune(got)) != len(": ")+reasonLength+1 {
		t.Errorf("the reason is %q", got)
	}
	if got := (&view{}).because(); got != "" {
		t.Errorf("without a failure it is %q", got)
	}
}

func TestAdminsSeeWhyAnAppIsDeadAndItsLastStderrLines(t *testing.T) {
	y, events := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.Configured = map[string]config.App{"notes": {Source: core.Source{Kind: core.SourcePath, Ref: bundleDir(t, "@test/notes", modeDying, nil)}}}
		o.Policy = &Policy{Delays: []time.Duration{0}, HealthyAfter: time.Minute}
	})
	open(t, y)
	if err := events.wait(t.Context(), "bundle.dead", 1); err != nil {
		t.Fatal(err)
	}
	app := y.List(ws)[0]
	if !strings.Contains(app.LastError, "status 7") || len(app.LastOutput) == 0 {
		t.Errorf("the app shows %q and %q", app.LastError, app.LastOutput)
	}
	if member := app.ForMember(); member.LastOutput != nil || member.LastError != app.LastError {
		t.Errorf("members see %q and %q", member.LastError, member.LastOutput)
	}
}

func TestADeclaredAppThatFailedToInstallIsListed(t *testing.T) {
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		o.Configured = map[string]config.App{"notes": {Source: core.Source{Kind: core.SourcePath, Ref: "/no/such/bundle"}}}
	})
	open(t, y)
	for len(y.List(ws)) == 0 {
		if !wait(t.Context(), time.Millisecond) {
			t.Fatal("it is not listed")
		}
	}
	app := y.List(ws)[0]
	if app.Name != "notes" || app.Status != core.StateDead || !strings.Contains(app.LastError, "/no/such/bundle") {
		t.Errorf("it is listed as %+v", app)
	}
	err := y.AwaitOffer(t.Context(), ws, "notes")
	if core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(core.TextOf(err), "could not be installed") {
		t.Errorf("a call returned %v", err)
	}
	y.Reconfigure(nil, map[string]config.App{})
	expect(t, "apps after the declaration was removed", len(y.List(ws)), 0)
}
