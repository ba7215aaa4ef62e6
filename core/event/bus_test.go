package event

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBus(t *testing.T) *Bus {
	t.Helper()
	b := New(hclog.NewNullLogger())
	t.Cleanup(b.Close)
	return b
}

func change(workspace string, n int) core.Event {
	return core.Event{Name: core.EventDataChanged, Workspace: workspace, Data: core.DataChanged{Tool: fmt.Sprint(n)}}
}

func number(e core.Event) string { return e.Data.(core.DataChanged).Tool }

func TestEveryReaderOfAWorkspaceGetsItsEventsInOrderAndNoOthers(t *testing.T) {
	b := newBus(t)
	readers := []*Subscription{b.Subscribe("ws_a", "usr_a"), b.Subscribe("ws_a", "usr_a")}
	other := b.Subscribe("ws_b", "usr_a")
	for i := range 100 {
		b.Publish(change("ws_a", i))
	}
	for _, s := range readers {
		for i := range 100 {
			if got := number(<-s.C); got != fmt.Sprint(i) {
				t.Fatalf("event %d is %q", i, got)
			}
		}
	}
	if len(other.C) != 0 {
		t.Fatalf("another workspace's reader got %d events", len(other.C))
	}
}

func TestALaggingReaderIsClosedAndDoesNotAffectOthers(t *testing.T) {
	b := newBus(t)
	stalled, quick := b.Subscribe("ws_a", "usr_a"), b.Subscribe("ws_a", "usr_a")
	for i := range queueLength + 10 { // returns, because Publish does not block
		b.Publish(change("ws_a", i))
		if got := number(<-quick.C); got != fmt.Sprint(i) {
			t.Fatalf("event %d is %q", i, got)
		}
	}
	received := 0
	for range stalled.C { // ends, because the channel was closed
		received++
	}
	if received != queueLength {
		t.Fatalf("the stalled reader got %d events before it was cut, want %d", received, queueLength)
	}
	stalled.Close() // closing a reader that was already closed is allowed
}

func TestClosingASubscriptionEndsItOnce(t *testing.T) {
	b := newBus(t)
	s := b.Subscribe("ws_a", "usr_a")
	s.Close()
	s.Close()
	b.Publish(change("ws_a", 1))
	if _, open := <-s.C; open {
		t.Fatal("a closed subscription received an event")
	}
	if len(b.readers) != 0 {
		t.Fatalf("the bus still has %v", b.readers)
	}
}

func TestClosingTheBusClosesEverySubscription(t *testing.T) {
	b := New(hclog.NewNullLogger())
	s := b.Subscribe("ws_a", "usr_a")
	b.Close()
	b.Close()
	b.Publish(change("ws_a", 1))
	for _, s := range []*Subscription{s, b.Subscribe("ws_a", "usr_a")} {
		if _, open := <-s.C; open {
			t.Fatal("a subscription of a closed bus is open")
		}
	}
}

func TestTheHeartbeatReachesEveryWorkspaceEvery30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		readers := []*Subscription{b.Subscribe("ws_a", "usr_a"), b.Subscribe("ws_b", "usr_a")}
		start := time.Now()
		for beat := 1; beat <= 3; beat++ {
			for _, s := range readers {
				e := <-s.C
				if e.Name != core.EventHeartbeat {
					t.Fatalf("event %q", e.Name)
				}
				want := start.Add(time.Duration(beat) * 30 * time.Second)
				if got := core.Timestamp(time.Time(e.Data.(core.Heartbeat).Timestamp)); got != core.Timestamp(want) {
					t.Fatalf("beat %d says %s, want %s", beat, got, core.Timestamp(want))
				}
			}
		}
		cancel()
		<-done
	})
}

func TestRecentEventsAreDroppedAfterTheirRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(hclog.NewNullLogger())
		b.Retain(time.Hour)
		for range 3 {
			b.Publish(core.Event{Name: "a", Workspace: "ws_a"})
			time.Sleep(25 * time.Minute) //nolint:forbidigo // the clock of synctest
		}
		if got := len(b.Recent("ws_a", "usr_a")); got != 2 {
			t.Errorf("%d events are kept, want only the events of the last hour", got)
		}
		for range recentLength + 10 { // the ring is full, and its oldest event is not the first
			b.Publish(core.Event{Name: "b", Workspace: "ws_a"})
		}
		time.Sleep(30 * time.Minute) //nolint:forbidigo // the clock of synctest
		b.Publish(core.Event{Name: "c", Workspace: "ws_a"})
		time.Sleep(31 * time.Minute) //nolint:forbidigo // the clock of synctest
		if got := b.Recent("ws_a", "usr_a"); len(got) != 1 || got[0].Name != "c" {
			t.Errorf("%d events are kept", len(got))
		}
		b.Publish(core.Event{Name: "d", Workspace: "ws_a"})
		if got := b.Recent("ws_a", "usr_a"); len(got) != 2 || got[1].Name != "d" {
			t.Errorf("%+v", got)
		}
	})
}

func TestRecentKeepsTheLast500EventsWithoutHeartbeats(t *testing.T) {
	b := newBus(t)
	if got := b.Recent("ws_a", "usr_a"); len(got) != 0 {
		t.Fatalf("a new bus remembers %v", got)
	}
	b.Publish(change("ws_b", -1))
	for i := range 600 {
		b.Publish(change("ws_a", i))
		b.Publish(core.Event{Name: core.EventHeartbeat, Data: core.Heartbeat{}})
	}
	b.Publish(change("ws_b", 600))
	got := b.Recent("ws_a", "usr_a")
	if len(got) != 499 || number(got[0]) != "101" || number(got[498]) != "599" {
		t.Fatalf("%d events, from %s to %s", len(got), number(got[0]), number(got[len(got)-1]))
	}
	if other := b.Recent("ws_b", "usr_a"); len(other) != 1 || number(other[0]) != "600" {
		t.Fatalf("the other workspace remembers %v", other)
	}
}

func TestReadersMaySubscribeAndCloseWhileOthersPublish(t *testing.T) {
	b := newBus(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				b.Publish(change("ws_a", i))
			}
		})
		wg.Go(func() {
			for range 200 {
				s := b.Subscribe("ws_a", "usr_a")
				b.Recent("ws_a", "usr_a")
				s.Close()
			}
		})
	}
	wg.Wait()
	if len(b.readers) != 0 {
		t.Fatalf("the bus still has %v", b.readers)
	}
}

func TestAnEventForOnePersonReachesOnlyThem(t *testing.T) {
	b := newBus(t)
	ada, eve := b.Subscribe("ws_a", "usr_ada"), b.Subscribe("ws_a", "usr_eve")
	b.Publish(core.Event{Name: core.EventConversationUpdated, Workspace: "ws_a", Owner: "usr_ada", Data: core.ConversationUpdated{Title: "private"}})
	b.Publish(change("ws_a", 1))
	if got := <-ada.C; got.Name != core.EventConversationUpdated {
		t.Errorf("its owner received %+v first", got)
	}
	if got := <-eve.C; got.Name != core.EventDataChanged {
		t.Errorf("another person received %+v", got)
	}
	if got := b.Recent("ws_a", "usr_eve"); len(got) != 1 {
		t.Errorf("another person finds %+v", got)
	}
}
