package event

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

const (
	queueLength       = 256 // events a reader may lag behind before it is closed
	recentLength      = 500 // across all workspaces
	heartbeatInterval = 30 * time.Second
)

// Bus holds the event streams of all workspaces. It is safe for concurrent use.
type Bus struct {
	log hclog.Logger

	mu      sync.Mutex
	readers map[string]map[*Subscription]struct{} // by workspace
	recent  ring
	keep    time.Duration // how long recent events are kept; 0 means until newer ones replace them
	relay   Relay         // nil for a single server
	closed  bool
	dropped uint64 // events that a reader did not get
}

// New returns a bus without readers.
func New(log hclog.Logger) *Bus {
	return &Bus{log: log, readers: make(map[string]map[*Subscription]struct{})}
}

// Retain sets how long recent events are kept; 0 keeps them until newer ones replace them.
func (b *Bus) Retain(keep time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep = keep
}

// dropOld drops recent events that are older than the retention. The caller holds b.mu.
func (b *Bus) dropOld(now time.Time) {
	if b.keep > 0 {
		b.recent.dropBefore(now.Add(-b.keep))
	}
}

// Publish delivers e to every reader of its workspace, or to all readers if the workspace is "". All readers
// receive events in the same order. It never blocks: a reader whose queue is full is closed. Readers on other
// servers receive the event through the relay, except the heartbeat: each server has its own.
func (b *Bus) Publish(e core.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.relay != nil && e.Name != core.EventHeartbeat {
		b.relay.Send(e)
	}
	b.publish(e)
}

// publish delivers to the readers of this server. The caller holds b.mu.
func (b *Bus) publish(e core.Event) {
	if e.Name != core.EventHeartbeat { // heartbeats would displace the other events
		b.recent.add(e, time.Now())
	}
	if e.Workspace != "" {
		b.deliver(b.readers[e.Workspace], e)
		return
	}
	for _, readers := range b.readers {
		b.deliver(readers, e)
	}
}

// deliver queues e for each reader. The caller holds b.mu.
func (b *Bus) deliver(readers map[*Subscription]struct{}, e core.Event) {
	for s := range readers {
		if e.Owner != "" && e.Owner != s.user {
			continue
		}
		select {
		case s.queue <- e:
		default:
			b.log.Warn("event stream closed: its reader lags too far behind",
				"workspace", s.workspace, "event", e.Name, "queued", len(s.queue))
			b.dropped++
			b.remove(s)
		}
	}
}

// Recent returns the events of a workspace for a user that are still among the 500 most recent of all
// workspaces, oldest first, without heartbeats.
func (b *Bus) Recent(workspace, user string) []core.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropOld(time.Now())
	return b.recent.forUser(workspace, user)
}

// Run publishes a heartbeat to every workspace every 30 seconds, and events from other servers, until ctx ends.
func (b *Bus) Run(ctx context.Context) {
	defer b.receive(ctx)()
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			b.mu.Lock()
			b.dropOld(now)
			b.mu.Unlock()
			b.Publish(core.Event{Name: core.EventHeartbeat, Data: core.Heartbeat{Timestamp: core.Stamp(now)}})
		}
	}
}

// Stats are statistics about a Bus.
type Stats struct {
	Readers int    // open subscriptions
	Queued  int    // events that readers have not received yet
	Dropped uint64 // events that readers did not get because they lagged
}

// Stats returns the current statistics.
func (b *Bus) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Dropped: b.dropped}
	for _, readers := range b.readers {
		s.Readers += len(readers)
		for r := range readers {
			s.Queued += len(r.queue)
		}
	}
	return s
}

// Close closes every subscription. Later events are dropped and later subscriptions are closed
// from the start.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, readers := range b.readers {
		for s := range readers {
			b.remove(s)
		}
	}
}
