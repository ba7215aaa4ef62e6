package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Verify looks up one of the live sessions. If the store does not have it, the store has lost data, as a
// Redis without persistence does at a restart: all live sessions are written again, so that peer servers
// report them as unavailable instead of not found.
func (w *Writer) Verify(ctx context.Context, live func() []sessionstore.Record) {
	all := live()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, StoreTimeout)
	defer cancel()
	one := all[rand.IntN(len(all))] //nolint:gosec // any will do
	if _, err := w.Find(ctx, one.ID); errors.Is(err, plugins.ErrNotFound) {
		w.restore(ctx, one.ID, live)
	}
}

// restore writes all live sessions, unless the one that the store does not have has ended meanwhile.
// Nothing is put, looked up or deleted in between, so that no session is written after its end.
func (w *Writer) restore(ctx context.Context, missing string, live func() []sessionstore.Record) {
	w.using.Lock()
	defer w.using.Unlock()
	all := live()
	if !slices.ContainsFunc(all, func(rec sessionstore.Record) bool { return rec.ID == missing }) {
		return
	}
	for _, rec := range all {
		if err := w.store.Put(ctx, rec, w.ttl); err != nil {
			w.outcome(err) // the next Verify tries again
			return
		}
	}
	w.log.Warn("session store lost its data; live sessions were written again", "sessions", len(all))
}
