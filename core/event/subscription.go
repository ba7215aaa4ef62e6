package event

import "github.com/ropewalk/ropewalk/core"

// Subscription is one user's subscription to the events of a workspace. C yields the events in the order in
// which they were published. It is closed when the reader lags too far behind, when Close is called, or when
// the bus is closed; events queued before that are still received.
type Subscription struct {
	C <-chan core.Event

	bus       *Bus
	workspace string
	user      string
	queue     chan core.Event
}

// Subscribe adds a reader for the events of a workspace that are for everyone or for that user, and for the
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

// Close ends the subscription. It is safe to call more than once.
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
