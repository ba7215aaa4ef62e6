package event

import "github.com/ropewalk/ropewalk/core"

// Subscription is one reader of the events of a workspace that a user gets. C gives the events in the
// order in which they were published. It is closed when the reader lagged too far behind, when Close was
// called, or when the bus closed; what was queued before is still received first.
type Subscription struct {
	C <-chan core.Event

	bus       *Bus
	workspace string
	user      string
	queue     chan core.Event
}

// Subscribe adds a reader of the events of a workspace that are for everybody or for that user, and of the
// heartbeat. Call Close when done.
func (b *Bus) Subscribe(workspace, user string) *Subscription {
	queue := make(chan core.Event, queueLength)
	s := &Subscription{C: queue, bus: b, workspace: workspace, user: user, queue: queue}
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

// remove removes s and closes its channel, once. The caller holds b.mu, so nothing is being sent to it.
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
