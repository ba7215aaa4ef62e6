package mcphttp

import (
	"context"
	"sync"

	"github.com/ropewalk/ropewalk/core/tools"
)

// closing ends the tools' side of sessions in the background: apps may take a while to end what they
// kept for a session.
type closing struct {
	mu      sync.Mutex
	waiting bool // wait was called: from now on start does the work itself
	running sync.WaitGroup
}

// start begins to close one.
func (n *closing) start(s *tools.Session) {
	n.mu.Lock()
	if n.waiting {
		n.mu.Unlock()
		closeTools(s)
		return
	}
	n.running.Add(1)
	n.mu.Unlock()
	go func() {
		defer n.running.Done()
		closeTools(s)
	}()
}

// wait returns when all that were started before are closed.
func (n *closing) wait() {
	n.mu.Lock()
	n.waiting = true
	n.mu.Unlock()
	n.running.Wait()
}

// closeTools closes one now. Apps are notified within gateTimeout, whatever else ends.
func closeTools(s *tools.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), gateTimeout)
	defer cancel()
	s.Close(ctx)
}
