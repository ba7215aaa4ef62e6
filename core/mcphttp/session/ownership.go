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
	w.using.RLock()
	defer w.using.RUnlock()
	replaced, err := w.replaceHeld(ctx, rec, w.ttl, owner)
	if replaced && err == nil {
		admit()
	}
	return replaced, err
}

// GiveUp writes that no server has a session that has an owner. Its lifetime stays as it is.
func (w *Writer) GiveUp(ctx context.Context, rec sessionstore.Record, owner string) (bool, error) {
	rec.Owner = ""
	return w.replace(ctx, rec, 0, owner)
}

func (w *Writer) replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	w.using.RLock()
	defer w.using.RUnlock()
	return w.replaceHeld(ctx, rec, ttl, owner)
}

// replaceHeld is replace with using held.
func (w *Writer) replaceHeld(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string) (bool, error) {
	store, ok := w.store.(sessionstore.Replacer)
	if !ok {
		return false, plugins.ErrUnimplemented
	}
	return store.Replace(ctx, rec, ttl, owner)
}

func (w *Writer) get(ctx context.Context, id string) (sessionstore.Record, error) {
	w.using.RLock()
	defer w.using.RUnlock()
	return w.store.Get(ctx, id)
}

func (w *Writer) put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	w.using.RLock()
	defer w.using.RUnlock()
	return w.store.Put(ctx, rec, ttl)
}
