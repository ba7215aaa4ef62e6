package cluster

import (
	"context"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// subscribers contains the recipients of notices in this server. The zero value has none.
type subscribers struct {
	mu      sync.Mutex
	events  map[*func(core.Event)]struct{}
	changes map[*changeQueue]struct{}
}

func (s *subscribers) notify(n notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.change.Kind == kindEvent {
		for deliver := range s.events {
			(*deliver)(n.event())
		}
		return
	}
	for q := range s.changes {
		q.add(n.change)
	}
}

// notifyMissed announces that a notice may have been missed.
func (s *subscribers) notifyMissed() { s.notify(notice{change: core.Change{Kind: core.ChangeAll}}) }

func (s *subscribers) addEvents(deliver func(core.Event)) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == nil {
		s.events = make(map[*func(core.Event)]struct{})
	}
	s.events[&deliver] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.events, &deliver)
	}
}

func (s *subscribers) addChanges(q *changeQueue) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = make(map[*changeQueue]struct{})
	}
	s.changes[q] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changes, q)
	}
}

// changeQueue contains the changes that a subscriber has not received yet. A change that is already queued is not
// added again, so the queue cannot grow beyond the number of things that can change.
type changeQueue struct {
	mu       sync.Mutex
	list     []core.Change
	notEmpty chan struct{}
}

func newChangeQueue() *changeQueue { return &changeQueue{notEmpty: make(chan struct{}, 1)} }

func (q *changeQueue) add(c core.Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.list, c) {
		return
	}
	q.list = append(q.list, c)
	select {
	case q.notEmpty <- struct{}{}:
	default:
	}
}

func (q *changeQueue) removeAll() []core.Change {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.list
	q.list = nil
	return all
}

// deliver passes changes to a channel until ctx ends, and then closes the channel.
func (q *changeQueue) deliver(ctx context.Context, out chan<- core.Change) {
	defer close(out)
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.notEmpty:
		}
		for _, c := range q.removeAll() {
			select {
			case <-ctx.Done():
				return
			case out <- c:
			}
		}
	}
}
