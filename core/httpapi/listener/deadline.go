package listener

import (
	"sync"
	"time"
)

// slack is the longest delay with which a deadline may take effect.
const slack = time.Second

// deadline is a read or write deadline that is applied at the next Read or Write and may take effect up to slack late.
// The HTTP library sets four deadlines per request, and setting them would cost as much as reading the request. Most of
// them apply to no Read or Write, and most are only slightly later than the previous one. A deadline in the past and
// the zero time take effect immediately, because they are meant for a Read or Write that is already blocked.
type deadline struct {
	set func(time.Time) error

	mu      sync.Mutex
	wanted  time.Time // zero if the applied deadline is the wanted one
	applied time.Time
}

func (d *deadline) schedule(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.IsZero() || time.Until(t) <= 0 {
		d.wanted, d.applied = time.Time{}, t
		return d.set(t)
	}
	d.wanted = t
	return nil
}

func (d *deadline) apply() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted.IsZero() || !d.wanted.After(d.applied) && d.applied.Sub(d.wanted) <= slack {
		return nil
	}
	d.applied = d.wanted.Add(slack)
	return d.set(d.applied)
}
