package listener

import (
	"sync"
	"time"
)

// slack is how much later than wanted a deadline may take effect.
const slack = time.Second

// deadline counts from the next Read or Write on, and may take effect slack late. The HTTP library
// sets four deadlines for each request, which would cost as much as reading it; under most of them
// nothing is read, and most are hardly later than the one before. A deadline in the past and no
// deadline take effect at once: they are for a Read or Write that waits at this moment.
type deadline struct {
	set func(time.Time) error

	mu      sync.Mutex
	wanted  time.Time // zero when the applied one is the wanted one
	applied time.Time
}

func (d *deadline) want(t time.Time) error {
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
