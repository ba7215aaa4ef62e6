package footprint

import (
	"context"
	"runtime"
	"time"
)

// One processor is enough for a gateway that mostly waits: with more, each message that arrives wakes a
// thread to look for work that there is not, which costs as much as a fifth of a call. So the process
// runs on one while it uses less than that, and on all of them as soon as it does not.
const (
	few      = 0.6 // of one processor: while less is used ...
	calmTime = time.Second
	most     = 0.8 // of one processor: as soon as more is used, all of them are

	shortLook = 20 * time.Millisecond // how often it is seen what is used ...
	longLook  = 100 * time.Millisecond
	busyFrom  = 0.1 // ... which is the short one from this share of a processor on
)

// Processors lets the process run on one processor while one is enough, unless the operator has said
// how many (GOMAXPROCS). It returns when ctx ends, with all of them in use.
func Processors(ctx context.Context, gomaxprocs string) {
	if gomaxprocs != "" || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	defer runtime.SetDefaultGOMAXPROCS()
	var g governor
	used, ok := processorTime()
	at, look := time.Now(), time.NewTimer(shortLook)
	defer look.Stop()
	for ok {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		before, since := used, at
		used, ok = processorTime()
		at = time.Now()
		share := float64(used-before) / float64(at.Sub(since))
		switch one, changed := g.see(share, at.Sub(since)); {
		case changed && one:
			runtime.GOMAXPROCS(1)
		case changed:
			runtime.SetDefaultGOMAXPROCS()
		}
		look.Reset(interval(share))
	}
}

func interval(share float64) time.Duration {
	if share < busyFrom {
		return longLook
	}
	return shortLook
}

// governor decides how many processors are used.
type governor struct {
	one  bool
	calm time.Duration // how long few has not been reached
}

// see takes the share of a processor that was used in a time, and tells when it decides anew.
func (g *governor) see(share float64, in time.Duration) (one, changed bool) {
	switch {
	case g.one:
		if share > most {
			*g = governor{}
			return false, true
		}
	case share >= few:
		g.calm = 0
	default:
		if g.calm += in; g.calm >= calmTime {
			g.one = true
			return true, true
		}
	}
	return g.one, false
}
