package session

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Replaces reports whether the store lets servers take over each other's sessions.
func (w *Writer) Replaces() bool { return w.replaces.Load() }

// Replace writes a record over the one that has an owner, and then calls admit. It returns false when the
// owner is another one. No swap of stores comes between the two.
func (w *Writer) Replace(ctx context.Context, rec sessionstore.Record, owner string, admit func()) (bool, error) {
	return w.replace(ctx, rec, w.ttl, owner, admit)
}

// GiveUp writes that no server has a session that has an owner. Its lifetime stays as it is.
func (w *Writer) GiveUp(ctx context.Context, rec sessionstore.Record, owner string) (bool, error) {
	rec.Owner = ""
	return w.replace(ctx, rec, 0, owner, nothing)
}

func (w *Writer) replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string, admit func()) (bool, error) {
	w.using.RLock()
	defer w.using.RUnlock()
	store, ok := w.store.(sessionstore.Replacer)
	if !ok {
		return false, plugins.ErrUnimplemented
	}
	replaced, err := store.Replace(ctx, rec, ttl, owner)
	if replaced && err == nil {
		admit()
	}
	return replaced, err
}

// nothing is done after a write that admits no session.
func nothing() {}
