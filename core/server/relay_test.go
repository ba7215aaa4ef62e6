package server

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// wire is a relay that delivers a test's events.
type wire chan core.Event

func (wire) Send(core.Event) {}

func (w wire) Receive(ctx context.Context, deliver func(core.Event)) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w:
			deliver(e)
		}
	}
}

func TestAnEventFromAnotherServerWaitsForItsStateHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, began := make(wire), time.Now()
		there := map[string]time.Duration{"comes": 300 * time.Millisecond, "never": time.Hour}
		r := relay{w, func(workspace, app string) bool {
			at, known := there[app]
			return workspace == "ws_a" && known && time.Since(began) >= at
		}}
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Receive(ctx, func(e core.Event) {
				got = append(got, e.Name+" "+time.Since(began).Round(10*time.Millisecond).String())
			})
		}()
		for _, e := range []struct{ name, data string }{
			{core.EventBundleInstalled, `{"name":"comes"}`}, {core.EventDataChanged, `{}`}, {core.EventBundleUninstalled, `{"name":"gone"}`},
			{core.EventBundleInstalled, `{"name":"never"}`}, {core.EventBundleInstalled, `none`}, {core.EventBundleUninstalled, `{"name":"comes"}`},
		} {
			w <- core.Event{Name: e.name, Workspace: "ws_a", Data: json.RawMessage(e.data)}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		want := []string{
			"bundle.installed 300ms", "data.changed 300ms", "bundle.uninstalled 300ms", "bundle.installed 1.3s", "bundle.installed 1.3s", "bundle.uninstalled 2.3s",
		}
		if !slices.Equal(got, want) {
			t.Errorf("delivered %q, want %q", got, want)
		}
		cancel()
		<-ended
	})
}
