package store

import (
	"context"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
)

// ears are those in this server who want to know what the others tell. The zero value has none.
type ears struct {
	mu      sync.Mutex
	events  map[*func(core.Event)]struct{}
	changes map[*pending]struct{}
}

func (e *ears) tell(n notice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n.change.Kind == kindEvent {
		for deliver := range e.events {
			(*deliver)(n.event())
		}
		return
	}
	for p := range e.changes {
		p.add(n.change)
	}
}

// missed tells that something may not have been told.
func (e *ears) missed() { e.tell(notice{change: core.Change{Kind: core.ChangeAll}}) }

// hearEvents has deliver called for each event until the returned function is; from its return on
// deliver is called no more.
func (e *ears) hearEvents(deliver func(core.Event)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.events == nil {
		e.events = make(map[*func(core.Event)]struct{})
	}
	e.events[&deliver] = struct{}{}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.events, &deliver)
	}
}

func (e *ears) hearChanges(p *pending) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changes == nil {
		e.changes = make(map[*pending]struct{})
	}
	e.changes[p] = struct{}{}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.changes, p)
	}
}

// pending is what one who hears of changes has not yet taken. A change that waits already is not
// added again, so it is never longer than the list of what can change.
type pending struct {
	mu   sync.Mutex
	list []core.Change
	some chan struct{}
}

func newPending() *pending { return &pending{some: make(chan struct{}, 1)} }

func (p *pending) add(c core.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.list, c) {
		return
	}
	p.list = append(p.list, c)
	select {
	case p.some <- struct{}{}:
	default:
	}
}

func (p *pending) take() []core.Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.list
	p.list = nil
	return all
}

// feed hands changes on until ctx ends, and closes the channel then.
func (p *pending) feed(ctx context.Context, out chan<- core.Change) {
	defer close(out)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.some:
		}
		for _, c := range p.take() {
			select {
			case <-ctx.Done():
				return
			case out <- c:
			}
		}
	}
}
