package mcphttp

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/core/tools"
)

// endings give up clients' places in the hall beside the requests that end them: apps may take a
// while to end what they kept for a session.
type endings struct {
	mu      sync.Mutex
	waiting bool // somebody waits: whoever comes now does it himself
	running sync.WaitGroup
}

// end gives a place up.
func (n *endings) end(place *tools.Session) {
	n.mu.Lock()
	if n.waiting {
		n.mu.Unlock()
		closePlace(place)
		return
	}
	n.running.Add(1)
	n.mu.Unlock()
	go func() {
		defer n.running.Done()
		closePlace(place)
	}()
}

// wait returns when every place that was given up before is.
func (n *endings) wait() {
	n.mu.Lock()
	n.waiting = true
	n.mu.Unlock()
	n.running.Wait()
}

// closePlace gives up a place now. Apps are told within gateTimeout, whatever else ends.
func closePlace(place *tools.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), gateTimeout)
	defer cancel()
	place.Close(ctx)
}
