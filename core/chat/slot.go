package chat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// idle is how long a run that was admitted may wait to be started before its place is free again.
const idle = 30 * time.Second

// slot is the one place for a run in a conversation.
type slot struct {
	cancel context.CancelFunc // ends the run; nil until it started
	over   chan struct{}      // closed when the place is free
	expiry *time.Timer
}

// take takes the place of a conversation; core.CodeRunInProgress when it is taken.
func (e *Engine) take(conversation string) (*slot, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running[conversation] != nil {
		return nil, core.Errorf(core.CodeRunInProgress, "a run is in progress in this conversation; wait for it, or end it by closing its stream")
	}
	s := &slot{over: make(chan struct{})}
	s.expiry = time.AfterFunc(idle, func() { e.free(conversation, s) })
	e.running[conversation] = s
	return s, nil
}

// start gives a run its context; false when its place is no longer its own.
func (e *Engine) start(ctx context.Context, conversation string, s *slot) (context.Context, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running[conversation] != s {
		return ctx, false
	}
	s.expiry.Stop()
	ctx, s.cancel = context.WithCancel(ctx)
	return ctx, true
}

// free gives the place back. It may be called again.
func (e *Engine) free(conversation string, s *slot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running[conversation] != s {
		return
	}
	s.expiry.Stop()
	if s.cancel != nil {
		s.cancel()
	}
	delete(e.running, conversation)
	close(s.over)
}

// interrupt ends the run of a conversation, if there is one, and waits until it is over.
func (e *Engine) interrupt(ctx context.Context, conversation string) error {
	e.mu.Lock()
	s := e.running[conversation]
	if s != nil && s.cancel != nil {
		s.cancel()
	}
	e.mu.Unlock()
	if s == nil {
		return nil
	}
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
