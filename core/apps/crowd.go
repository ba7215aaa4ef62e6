package apps

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	crowdedPause = time.Second     // before trying again when all apps were in use
	memoryPause  = 2 * time.Second // between two memory checks, so that the second one sees memory that was freed
)

// crowd limits the number of apps that are awake and the memory that they use. When a limit is exceeded, it puts the
// least recently used apps to sleep, if they may sleep.
type crowd struct {
	manager  *Manager
	maxAwake atomic.Int64  // maximum number of apps awake; 0 for no limit
	due      chan struct{} // capacity 1; receives when the limit may be exceeded
	running  sync.WaitGroup
}

// limit sets how many apps may be awake. 0 means no limit.
func (c *crowd) limit(n int) {
	c.maxAwake.Store(int64(n))
	c.checkSoon()
}

// checkSoon makes thin check the number of awake apps soon.
func (c *crowd) checkSoon() {
	if c.maxAwake.Load() <= 0 {
		return
	}
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// thin puts apps to sleep as needed until ctx ends.
func (c *crowd) thin(ctx context.Context) {
	var memory <-chan time.Time
	if c.manager.o.MemoryIsShort != nil {
		ticker := time.NewTicker(memoryPause)
		defer ticker.Stop()
		memory = ticker.C
	}
	var again <-chan time.Time
	for {
		var excess int
		select {
		case <-ctx.Done():
			return
		case <-c.due:
			excess = c.excess()
		case <-again:
			excess = c.excess()
		case <-memory:
			if !c.manager.o.MemoryIsShort() {
				continue
			}
			if c.rest(ctx, 1) == 0 {
				c.manager.log.Info("memory is short: put the least recently used app to sleep")
			}
			continue
		}
		again = nil
		if c.rest(ctx, excess) > 0 {
			again = time.After(crowdedPause)
		}
	}
}

// excess returns how many apps should go to sleep.
func (c *crowd) excess() int {
	limit := int(c.maxAwake.Load())
	if limit <= 0 {
		return 0
	}
	return max(0, len(c.awake())-limit)
}

// awake returns the apps that currently have processes, least recently used first.
func (c *crowd) awake() []*app {
	all := slices.DeleteFunc(c.manager.allApps(), func(a *app) bool {
		_, local := a.now.Load().instance.(measured)
		return !local
	})
	last := make(map[*app]int64, len(all))
	for _, a := range all {
		last[a] = a.used.Load() // sort by a snapshot that cannot change during the sort
	}
	slices.SortFunc(all, func(a, b *app) int { return cmp.Compare(last[a], last[b]) })
	return all
}

// rest puts n apps to sleep. It returns how many of them it could not put to sleep because all other apps are in use
// or never sleep.
func (c *crowd) rest(ctx context.Context, n int) (left int) {
	if n == 0 {
		return 0
	}
	for _, a := range c.awake() {
		if a.restNow(ctx) {
			n--
		}
		if n == 0 {
			break
		}
	}
	return n
}

// restNow puts the app to sleep if it may sleep and is not in use. It reports whether the app is now asleep.
func (a *app) restNow(ctx context.Context) bool {
	v := a.now.Load()
	if v.instance == nil {
		return false
	}
	reply := make(chan bool, 1)
	select {
	case a.rest <- reply:
	case <-v.replaced: // the app is about to sleep, or its instance has ended
		return false
	case <-ctx.Done():
		return false
	}
	if !<-reply {
		return false
	}
	select { // next, its supervisor removes the instance
	case <-v.replaced:
	case <-ctx.Done():
	}
	return true
}
