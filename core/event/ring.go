package event

import (
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// ring keeps the last recentLength events. The zero value is empty.
type ring struct {
	events []recentEvent
	oldest int // index of the oldest event once the ring is full
}

// recentEvent is an event with the time it was published.
type recentEvent struct {
	core.Event
	at time.Time
}

func (r *ring) add(e core.Event, at time.Time) {
	if len(r.events) < recentLength {
		r.events = append(r.events, recentEvent{e, at})
		return
	}
	r.events[r.oldest] = recentEvent{e, at}
	r.oldest = (r.oldest + 1) % recentLength
}

// dropBefore drops events published before t.
func (r *ring) dropBefore(t time.Time) {
	if len(r.events) == 0 || !r.events[r.oldest].at.Before(t) {
		return
	}
	var kept []recentEvent
	for i := range r.events {
		if e := r.events[(r.oldest+i)%len(r.events)]; !e.at.Before(t) {
			kept = append(kept, e)
		}
	}
	r.events, r.oldest = kept, 0
}

// forUser returns the events that a reader would have received, oldest first.
func (r *ring) forUser(workspace, user string) []core.Event {
	var found []core.Event
	for i := range r.events {
		e := r.events[(r.oldest+i)%len(r.events)].Event
		if (e.Workspace == workspace || e.Workspace == "") && (e.Owner == "" || e.Owner == user) {
			found = append(found, e)
		}
	}
	return found
}
