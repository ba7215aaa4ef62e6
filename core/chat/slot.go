package chat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// idle is how long a run that was admitted may wait to be started before its place is free again.
const idle = 30 * time.Second

// slot is the one place for a run in a conversation: in this server, and among all servers that
// share the state.
type slot struct {
	e      *Engine
	ref    core.ConversationRef
	cancel context.CancelFunc // ends the run; nil until it started
	freed  bool               // it is being given back; guarded, as cancel is, by the engine's mutex
	over   chan struct{}      // closed when the place is free
	expiry *time.Timer
	lease  *lease // nil when no other server shares the state
	once   sync.Once
}

// take takes the place of a conversation; core.CodeRunInProgress when it is taken, core.CodeNotFound
// when the conversation is gone.
func (e *Engine) take(ctx context.Context, ref core.ConversationRef) (*slot, error) {
	s := &slot{e: e, ref: ref, over: make(chan struct{})}
	e.mu.Lock()
	taken := e.running[ref.ID] != nil
	if !taken {
		e.running[ref.ID] = s
	}
	e.mu.Unlock()
	if taken {
		return nil, inProgress()
	}
	if e.store.Shared() {
		held, err := e.hold(ctx, s)
		if err != nil {
			s.free()
			return nil, err
		}
		s.lease = held
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.expiry = time.AfterFunc(idle, s.expire)
	return s, nil
}

func inProgress() error {
	return core.Errorf(core.CodeRunInProgress, "a run is in progress in this conversation; wait for it, or end it by closing its stream")
}

// start gives a run its context; false when its place is no longer its own.
func (s *slot) start(ctx context.Context) (context.Context, bool) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.freed {
		return ctx, false
	}
	s.expiry.Stop()
	ctx, s.cancel = context.WithCancel(ctx)
	return ctx, true
}

// expire frees the place of a run that nobody started.
func (s *slot) expire() {
	s.e.mu.Lock()
	begun := s.cancel != nil
	s.freed = s.freed || !begun
	s.e.mu.Unlock()
	if !begun {
		s.free()
	}
}

// end ends the run, if it has started.
func (s *slot) end() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// free gives the place back; another run may begin when it returns. It may be called again.
func (s *slot) free() {
	s.once.Do(func() {
		s.e.mu.Lock()
		s.freed = true
		s.e.mu.Unlock()
		s.end()
		if s.expiry != nil {
			s.expiry.Stop()
		}
		if s.lease != nil {
			s.lease.end()
		}
		s.e.mu.Lock()
		delete(s.e.running, s.ref.ID)
		s.e.mu.Unlock()
		close(s.over)
	})
}

// interrupt ends the run that goes on in a conversation in this server, if there is one, and waits
// until it is over.
func (e *Engine) interrupt(ctx context.Context, conversation string) error {
	e.mu.Lock()
	s := e.running[conversation]
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	s.end()
	select {
	case <-s.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newID is a prefix and 16 hexadecimal digits.
func newID(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}
