package pluginhost

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// A plugin with the capability "exclusive" has a backend with one writer, which two processes cannot share.
// When one of an old and a new plugin has it, the new one is given its settings only after the calls of the
// old one and its process have ended. Calls wait meanwhile, and are then made on the new one. When that
// does not start, or is closed before the old one is, the old one is started again.

// suspendDrain is how long the calls in flight of a plugin may take before it is suspended. What takes
// longer is cut off and made again on the next process.
const suspendDrain = 2 * time.Second

// suspension is the time in which another plugin has the backend of a slot.
type suspension struct {
	halted  chan struct{} // closed when nothing of the slot runs
	resumed chan struct{} // closed when the slot goes on
}

// suspendOld suspends the slots of old whose backend the plugin that info describes takes over.
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

// mayShareBackend reports whether the plugin of t may have the backend of the slot: it has the same place in
// the configuration, or the same directory.
func (s *slot[T]) mayShareBackend(t target) bool {
	return s.target.kind == plugins.KindSessionStore || s.target.label == t.label || s.target.name == t.name
}

// suspend lets the calls in flight end and then ends the process; new calls wait. False when the slot has no
// process of its own, is closed, or is suspended already.
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
	s.log.Info("plugin suspended: the one that replaces it gets its backend")
	return true
}

// awaitResume returns when a suspended slot is to go on; false when it is closed.
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

// succeed makes the slot answer the calls of those that were suspended for it, where it has their place in
// the configuration. The calls of the others wait.
func (s *slot[T]) succeed() {
	for _, other := range s.replaced {
		if s.target.kind == plugins.KindSessionStore || other.target.label == s.target.label {
			other.setSuccessor(s)
		}
	}
}

// giveBack makes the calls of the slots that were suspended for s wait for them again.
func (s *slot[T]) giveBack() {
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

// resumeOld starts the slots again that were suspended for s, and waits until they serve.
func (s *slot[T]) resumeOld(ctx context.Context) {
	for _, other := range s.replaced {
		other.resume(ctx)
	}
	s.replaced = nil
}

// resume starts a suspended slot again, unless it is closed.
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
