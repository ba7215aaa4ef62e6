package event

import "github.com/ropewalk/ropewalk/core"

// Subscription is one reader of one workspace. C gives the events in the order they were
// published. It is closed when the reader was cut for lagging, when Close was called, or when the
// bus closed; what was queued before is still received first.
type Subscription struct {
	C <-chan core.Event

	bus       *Bus
	workspace string
	queue     chan core.Event
}

// Subscribe adds a reader of workspace's events, and of the heartbeat. Call Close when done.
func (b *Bus) Subscribe(workspace string) *Subscription {
	queue := make(chan core.Event, queueLength)
	s := &Subscription{C: queue, bus: b, workspace: workspace, queue: queue}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(queue)
		return s
	}
	if b.readers[workspace] == nil {
		b.readers[workspace] = make(map[*Subscription]struct{})
	}
	b.readers[workspace][s] = struct{}{}
	return s
}

// Close ends the subscription. A second call does nothing.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	s.bus.remove(s)
}

// remove forgets s and closes its channel, once. The caller holds b.mu, so no send is under way.
func (b *Bus) remove(s *Subscription) {
	readers := b.readers[s.workspace]
	if _, ok := readers[s]; !ok {
		return
	}
	delete(readers, s)
	if len(readers) == 0 {
		delete(b.readers, s.workspace)
	}
	close(s.queue)
}
