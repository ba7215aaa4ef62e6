package pluginhost

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// A plugin with the capability "exclusive" has a backend with a single writer, which two processes cannot
// share. If the old or the new plugin has this capability, the new one gets its settings only after the old
// one's calls and process have ended. Calls wait in the meantime and then go to the new one. If it does not
// start, or is closed before the old one is, the old one is started again.

// suspendDrain is how long a plugin's pending calls may take before it is suspended. Longer calls are cut off
// and repeated on the next process.
const suspendDrain = 2 * time.Second

// suspension is the period during which another plugin owns a slot's backend.
type suspension struct {
	halted  chan struct{} // closed when nothing in the slot is running
	resumed chan struct{} // closed when the slot resumes
}

// suspendOld suspends those slots in old whose backend is taken over by the plugin that info describes.
func (s *slot[T]) suspendOld(ctx context.Context, info plugins.Info, old []*slot[T]) {
	for _, other := range old {
		exclusive := isExclusive(info) || other.has(plugins.CapabilityExclusive, func(T) bool { return false })
		if exclusive && other.mayShareBackend(s.target) && other.suspend(ctx) {
			s.replaced = append(s.replaced, other)
		}
	}
}

func isExclusive(info plugins.Info) bool {
	return slices.Contains(info.Capabilities, plugins.CapabilityExclusive)
}

// mayShareBackend reports whether t's plugin may use the slot's backend: it has the same place in the
// configuration, or the same directory.
func (s *slot[T]) mayShareBackend(t target) bool {
	return s.target.kind == plugins.KindSessionStore || s.target.label == t.label || s.target.name == t.name
}

// suspend lets pending calls finish and then stops the process; new calls wait. It returns false if the slot does not
// have its own process, is closed, or is already suspended.
func (s *slot[T]) suspend(ctx context.Context) bool {
	s.mu.Lock()
	if s.closing || s.suspended != nil || s.target.impl != nil {
		s.mu.Unlock()
		return false
	}
	now := &suspension{halted: make(chan struct{}), resumed: make(chan struct{})}
	s.suspended = now
	s.mu.Unlock()
	s.endAttachment()
	drain, cancel := context.WithTimeout(ctx, suspendDrain)
	defer cancel()
	s.awaitIdle(drain)
	s.interrupt()
	select {
	case <-now.halted:
	case <-s.ended:
	}
	s.log.Info("plugin suspended: its replacement takes over the backend")
	return true
}

// awaitResume returns true if a suspended slot must resume, and false if it is closed.
func (s *slot[T]) awaitResume() bool {
	s.mu.Lock()
	now := s.suspended
	s.mu.Unlock()
	if now == nil {
		return false
	}
	close(now.halted)
	select {
	case <-now.resumed:
		return true
	case <-s.stop:
		return false
	}
}

// takeOverCalls makes the slot answer the calls to the suspended slots that have the same place in the configuration.
// Calls to the other suspended slots wait.
func (s *slot[T]) takeOverCalls() {
	for _, other := range s.replaced {
		if s.target.kind == plugins.KindSessionStore || other.target.label == s.target.label {
			other.setSuccessor(s)
		}
	}
}

// returnCalls stops s from answering calls to the slots that were suspended for it. These calls wait until the slots
// resume.
func (s *slot[T]) returnCalls() {
	for _, other := range s.replaced {
		other.mu.Lock()
		closing := other.closing
		other.mu.Unlock()
		if !closing {
			other.setSuccessor(nil)
		}
	}
}

func (s *slot[T]) setSuccessor(other *slot[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.successor = other
	s.notify()
}

// resumeOld restarts the slots that were suspended for s, and waits until they serve.
func (s *slot[T]) resumeOld(ctx context.Context) {
	for _, other := range s.replaced {
		other.resume(ctx)
	}
	s.replaced = nil
}

// resume restarts a suspended slot, unless it is closed.
func (s *slot[T]) resume(ctx context.Context) {
	s.mu.Lock()
	now := s.suspended
	if s.closing || now == nil {
		s.mu.Unlock()
		return
	}
	s.suspended, s.successor, s.halt = nil, nil, make(chan struct{})
	s.notify()
	s.mu.Unlock()
	close(now.resumed)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.host.opts.StartTimeout)
	defer cancel()
	for {
		g, changed := s.tryAcquire()
		if g != nil {
			g.slot.release(g)
		}
		if g != nil || changed == nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
