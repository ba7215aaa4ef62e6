package server

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/event"
)

const (
	appliedWithin = time.Second // how long an event waits for its change to be applied here
	pollEvery     = 5 * time.Millisecond
	relayQueue    = 1024
)

// relay delivers the events of peer servers to the bus. Each waits, in order, until its change is
// applied on this server too: a client that receives bundle.installed finds the app in the list.
type relay struct {
	event.Relay
	listed func(workspace, app string) bool
}

// Receive implements event.Relay.
func (r relay) Receive(ctx context.Context, deliver func(core.Event)) {
	queue := make(chan core.Event, relayQueue)
	var delivering sync.WaitGroup
	delivering.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-queue:
				r.await(ctx, e)
				deliver(e)
			}
		}
	})
	r.Relay.Receive(ctx, func(e core.Event) {
		select {
		case queue <- e:
		default: // the queue is full: drop the event
		}
	})
	delivering.Wait()
}

// await waits until an installed app is listed or an uninstalled one is not, appliedWithin at most.
func (r relay) await(ctx context.Context, e core.Event) {
	if e.Name != core.EventBundleInstalled && e.Name != core.EventBundleUninstalled {
		return
	}
	var app struct {
		Name string `json:"name"`
	}
	raw, isJSON := e.Data.(json.RawMessage)
	if !isJSON || json.Unmarshal(raw, &app) != nil {
		return
	}
	limit, cancel := context.WithTimeout(ctx, appliedWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for r.listed(e.Workspace, app.Name) != (e.Name == core.EventBundleInstalled) {
		select {
		case <-tick.C:
		case <-limit.Done():
			return
		}
	}
}
