package event

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// wire joins the buses of several servers: what one sends, the others receive as JSON.
type wire struct {
	mu    sync.Mutex
	ends  map[*end]func(core.Event)
	ready chan struct{}
}

type end struct{ wire *wire }

func (e *end) Send(ev core.Event) {
	raw, _ := json.Marshal(ev.Data)
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	for other, deliver := range e.wire.ends {
		if other != e {
			deliver(core.Event{Name: ev.Name, Workspace: ev.Workspace, Data: json.RawMessage(raw)})
		}
	}
}

func (e *end) Receive(ctx context.Context, deliver func(core.Event)) {
	e.wire.mu.Lock()
	e.wire.ends[e] = deliver
	e.wire.mu.Unlock()
	e.wire.ready <- struct{}{}
	<-ctx.Done()
}

// joined returns the running buses of two servers.
func joined(t *testing.T) (a, b *Bus) {
	t.Helper()
	w := &wire{ends: make(map[*end]func(core.Event)), ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	start := func() *Bus {
		bus := New(hclog.NewNullLogger())
		bus.Join(&end{w})
		running.Go(func() { bus.Run(ctx) })
		<-w.ready
		return bus
	}
	return start(), start()
}

func TestAnEventFromOneServerReachesTheReadersOfAllServersWithItsType(t *testing.T) {
	a, b := joined(t)
	near, far, other := a.Subscribe("ws_a", "usr_a"), b.Subscribe("ws_a", "usr_a"), b.Subscribe("ws_b", "usr_a")
	for _, e := range []core.Event{
		{Name: core.EventBundleInstalled, Data: core.BundleInstalled{Name: "n", BundleName: "@a/n", Status: core.StateRunning, UI: &core.UI{Name: "N"}}},
		{Name: core.EventBundleInstallFailed, Data: core.BundleInstallFailed{Name: "n", Source: core.SourceURL, Error: core.CodeInstallFailed, Message: "m"}},
		{Name: core.EventBundleUninstalled, Data: core.BundleUninstalled{Name: "n"}},
		{Name: core.EventBundleCrashed, Data: core.BundleCrashed{Name: "n", RestartAttempt: 2}},
		{Name: core.EventBundleRecovered, Data: core.BundleRecovered{Name: "n"}},
		{Name: core.EventBundleDead, Data: core.BundleDead{Name: "n", Message: "m"}},
		{Name: core.EventDataChanged, Data: core.DataChanged{Server: "s", Tool: "t", Timestamp: core.Stamp{}}},
		{Name: "of.the.future", Data: json.RawMessage(`{"a":1}`)},
	} {
		e.Workspace = "ws_a"
		a.Publish(e)
		for name, s := range map[string]*Subscription{"near": near, "far": far} {
			if got := <-s.C; !reflect.DeepEqual(got, e) {
				t.Errorf("%s: got %#v, want %#v", name, got, e)
			}
		}
	}
	if len(near.C)+len(far.C)+len(other.C) != 0 {
		t.Error("an event arrived twice, or in another workspace")
	}
	if got := b.Recent("ws_a", "usr_a"); len(got) != 8 {
		t.Errorf("the other server remembers %d events", len(got))
	}
}

func TestHeartbeatsAreNotSentToOtherServers(t *testing.T) {
	a, b := joined(t)
	far := b.Subscribe("ws_a", "usr_a")
	a.Publish(core.Event{Name: core.EventHeartbeat})
	a.Publish(change("ws_a", 1))
	if got := <-far.C; got.Name != core.EventDataChanged {
		t.Errorf("got %q first", got.Name)
	}
}

func TestAClosedBusIgnoresOtherServers(t *testing.T) {
	a, b := joined(t)
	b.Close()
	a.Publish(change("ws_a", 1))
	if got := b.Recent("ws_a", "usr_a"); len(got) != 0 {
		t.Errorf("it remembers %v", got)
	}
}
