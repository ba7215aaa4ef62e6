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
	followWithin = time.Second // how long an event waits for what it tells of
	followTick   = 5 * time.Millisecond
	relayQueue   = 1024
)

// relay is the store as the bus sees it. Events of other servers wait, in their order, until what
// they tell of is so here, too: who hears that an app was installed finds it in the list.
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
		default: // this server is far behind, and its readers with it
		}
	})
	delivering.Wait()
}

// await waits until an app that came or went is there or gone, followWithin at most.
func (r relay) await(ctx context.Context, e core.Event) {
	if e.Name != core.EventBundleInstalled && e.Name != core.EventBundleUninstalled {
		return
	}
	var told struct {
		Name string `json:"name"`
	}
	raw, isJSON := e.Data.(json.RawMessage)
	if !isJSON || json.Unmarshal(raw, &told) != nil {
		return
	}
	limit, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	for r.listed(e.Workspace, told.Name) != (e.Name == core.EventBundleInstalled) {
		select {
		case <-tick.C:
		case <-limit.Done():
			return
		}
	}
}
