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
	crowdedPause = time.Second     // between two looks at apps that were all in use
	memoryPause  = 2 * time.Second // between two looks at the memory: what one app gave back shows in the next
)

// crowd keeps the number of awake apps, and the memory that they take, within bounds: the least recently used ones that may
// sleep are put to sleep.
type crowd struct {
	manager *Manager
	most    atomic.Int64  // apps awake; 0 for no limit
	due     chan struct{} // holds one; receives when there may be more
	running sync.WaitGroup
}

// limit sets how many apps may be awake.
func (c *crowd) limit(n int) {
	c.most.Store(int64(n))
	c.look()
}

// look makes thin count soon.
func (c *crowd) look() {
	if c.most.Load() <= 0 {
		return
	}
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// thin puts apps to sleep until ctx ends.
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
				c.manager.log.Info("the app that was not used for the longest time was put to sleep: memory is short")
			}
			continue
		}
		again = nil
		if c.rest(ctx, excess) > 0 {
			again = time.After(crowdedPause)
		}
	}
}

// excess is how many apps should go to sleep.
func (c *crowd) excess() int {
	most := int(c.most.Load())
	if most <= 0 {
		return 0
	}
	return max(0, len(c.awake())-most)
}

// awake returns the apps that have processes now, the least recently used first.
func (c *crowd) awake() []*app {
	all := slices.DeleteFunc(c.manager.allApps(), func(a *app) bool {
		_, local := a.now.Load().instance.(measured)
		return !local
	})
	last := make(map[*app]int64, len(all))
	for _, a := range all {
		last[a] = a.used.Load() // sorted by what does not change meanwhile
	}
	slices.SortFunc(all, func(a, b *app) int { return cmp.Compare(last[a], last[b]) })
	return all
}

// rest puts n apps to sleep, and returns how many of them could not be, because all others are in use or never sleep.
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

// restNow puts the app to sleep if it may sleep and nothing holds it, and reports whether it did.
func (a *app) restNow(ctx context.Context) bool {
	v := a.now.Load()
	if v.instance == nil {
		return false
	}
	answer := make(chan bool, 1)
	select {
	case a.rest <- answer:
	case <-v.replaced: // it is about to sleep, or ended
		return false
	case <-ctx.Done():
		return false
	}
	if !<-answer {
		return false
	}
	select { // its supervisor takes the instance away next
	case <-v.replaced:
	case <-ctx.Done():
	}
	return true
}
