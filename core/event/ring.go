package event

import "github.com/ropewalk/ropewalk/core"

// ring keeps the last recentLength events. The zero value is empty.
type ring struct {
	events []core.Event
	oldest int // index of the oldest event once the ring is full
}

func (r *ring) add(e core.Event) {
	if len(r.events) < recentLength {
		r.events = append(r.events, e)
		return
	}
	r.events[r.oldest] = e
	r.oldest = (r.oldest + 1) % recentLength
}

// of returns the events that a reader would have received, oldest first.
func (r *ring) of(workspace, user string) []core.Event {
	var found []core.Event
	for i := range r.events {
		e := r.events[(r.oldest+i)%len(r.events)]
		if (e.Workspace == workspace || e.Workspace == "") && (e.Owner == "" || e.Owner == user) {
			found = append(found, e)
		}
	}
	return found
}
