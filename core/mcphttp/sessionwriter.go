package mcphttp

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// storeTimeout bounds one call to the store.
const storeTimeout = 5 * time.Second

const (
	flushInterval = time.Second // how long a touch is held back
	flushBatch    = 1000        // touches per call, as the store's contract allows

	verifyInterval = 5 * time.Second // how long data loss in the store may go unnoticed
)

// sessionWriter keeps the session store up to date. Opening a session and looking one up wait for the store; touches,
// and removals that no request waits for, are written by the next flush.
type sessionWriter struct {
	ttl time.Duration
	log hclog.Logger

	using    sync.RWMutex // held for writing while the store is swapped
	store    sessionstore.Store
	replaces atomic.Bool // whether the store is a sessionstore.Replacer

	mu      sync.Mutex
	touched map[string]time.Time
	dropped map[string]struct{} // ended here, but possibly not yet deleted from the store
	failing bool                // the last flush failed, and the failure was logged
}

// newSessionWriter returns a writer to a store. Records live for ttl after their last use.
func newSessionWriter(store sessionstore.Store, ttl time.Duration, log hclog.Logger) *sessionWriter {
	w := &sessionWriter{ttl: ttl, log: log, touched: map[string]time.Time{}, dropped: map[string]struct{}{}}
	w.use(store)
	return w
}

// Put writes the record of a new session and then calls admit, which makes the session findable. The store is not
// swapped in between.
func (w *sessionWriter) Put(ctx context.Context, rec sessionstore.Record, admit func()) error {
	return w.put(ctx, rec, w.ttl, admit)
}

func (w *sessionWriter) put(ctx context.Context, rec sessionstore.Record, ttl time.Duration, admit func()) error {
	w.using.RLock()
	defer w.using.RUnlock()
	if err := w.store.Put(ctx, rec, ttl); err != nil {
		return err
	}
	admit()
	return nil
}

// Find looks up a session or a lease in the store. For a session that has ended on this server, it returns
// plugins.ErrNotFound even if the store has not deleted the record yet.
func (w *sessionWriter) Find(ctx context.Context, id string) (sessionstore.Record, error) {
	w.mu.Lock()
	_, gone := w.dropped[id]
	w.mu.Unlock()
	w.using.RLock()
	defer w.using.RUnlock()
	rec, err := w.store.Get(ctx, id)
	if err == nil && gone {
		return sessionstore.Record{}, plugins.ErrNotFound
	}
	return rec, err
}

// Touch records the use of a session, to be written with the next flush.
func (w *sessionWriter) Touch(id string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched[id] = now
}

// Drop records the end of a session, to be written with the next flush.
func (w *sessionWriter) Drop(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.touched, id)
	w.dropped[id] = struct{}{}
}

// Remove deletes a session now, or with a later flush if the store is unavailable.
func (w *sessionWriter) Remove(ctx context.Context, id string) {
	w.Drop(id)
	w.delete(ctx, id)
}

func (w *sessionWriter) delete(ctx context.Context, id string) bool {
	w.using.RLock()
	defer w.using.RUnlock()
	if err := w.store.Delete(ctx, id); err != nil {
		return w.outcome(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.dropped, id)
	return true
}

// Run flushes until ctx ends, and verifies the live sessions.
func (w *sessionWriter) Run(ctx context.Context, live func() []sessionstore.Record) {
	tick, verify := time.NewTicker(flushInterval), time.NewTicker(verifyInterval)
	defer tick.Stop()
	defer verify.Stop()
	for {
		select {
		case <-tick.C:
			w.Flush(ctx)
		case <-verify.C:
			w.Verify(ctx, live)
		case <-ctx.Done():
			return
		}
	}
}

// Flush writes the recorded touches and ends. Those that fail are kept for the next flush.
func (w *sessionWriter) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		batch := w.batch()
		if len(batch) == 0 {
			break
		}
		if !w.write(ctx, batch) {
			return
		}
	}
	for _, id := range w.ends() {
		if !w.delete(ctx, id) {
			return
		}
	}
}

// batch removes and returns the touches for one call.
func (w *sessionWriter) batch() []sessionstore.Touch {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []sessionstore.Touch
	for id, at := range w.touched {
		if len(batch) == flushBatch {
			break
		}
		batch = append(batch, sessionstore.Touch{ID: id, LastAccessedAt: at, TTL: w.ttl})
		delete(w.touched, id)
	}
	return batch
}

func (w *sessionWriter) write(ctx context.Context, batch []sessionstore.Touch) bool {
	w.using.RLock()
	err := w.store.Touch(ctx, batch)
	w.using.RUnlock()
	if err == nil {
		return w.outcome(nil)
	}
	w.mu.Lock()
	for _, t := range batch {
		_, newer := w.touched[t.ID]
		_, ended := w.dropped[t.ID]
		if !newer && !ended {
			w.touched[t.ID] = t.LastAccessedAt
		}
	}
	w.mu.Unlock()
	return w.outcome(err)
}

func (w *sessionWriter) ends() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.dropped))
	for id := range w.dropped {
		ids = append(ids, id)
	}
	return ids
}

// outcome logs once when the store starts to fail and once when it works again.
func (w *sessionWriter) outcome(err error) bool {
	w.mu.Lock()
	was := w.failing
	w.failing = err != nil
	w.mu.Unlock()
	switch {
	case err != nil && !was && !errors.Is(err, context.Canceled):
		w.log.Warn("session store unavailable; open sessions continue and will be written once it is available again", "error", err)
	case err == nil && was:
		w.log.Info("session store available again")
	}
	return err == nil
}

// Swap writes every live record to store and then uses that store. Nothing is put, looked up or touched in between.
func (w *sessionWriter) Swap(ctx context.Context, store sessionstore.Store, live func() []sessionstore.Record) error {
	w.using.Lock()
	defer w.using.Unlock()
	for _, rec := range live() {
		if err := store.Put(ctx, rec, w.ttl); err != nil {
			return err
		}
	}
	w.use(store)
	return nil
}

func (w *sessionWriter) use(store sessionstore.Store) {
	_, replaces := store.(sessionstore.Replacer)
	w.store = store
	w.replaces.Store(replaces)
}

// Replaces reports whether the store supports taking over another server's sessions.
func (w *sessionWriter) Replaces() bool { return w.replaces.Load() }

// Replace overwrites a record if its owner is the given one, and then calls admit. It returns false if the record has
// another owner. The store is not swapped in between.
func (w *sessionWriter) Replace(ctx context.Context, rec sessionstore.Record, owner string, admit func()) (bool, error) {
	return w.replace(ctx, rec, w.ttl, owner, admit)
}

// GiveUp clears the owner of a record if it is the given one. The record's lifetime does not change.
func (w *sessionWriter) GiveUp(ctx context.Context, rec sessionstore.Record, owner string) (bool, error) {
	rec.Owner = ""
	return w.replace(ctx, rec, 0, owner, nothing)
}

func (w *sessionWriter) replace(ctx context.Context, rec sessionstore.Record, ttl time.Duration, owner string, admit func()) (bool, error) {
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

// nothing is the admit function for writes that do not open a session.
func nothing() {}

// Verify looks up one of the live sessions. If the store does not have it, the store has lost data, as Redis without
// persistence does when it restarts. Verify then writes all live sessions again, so that peer servers report them as
// unavailable instead of not found.
func (w *sessionWriter) Verify(ctx context.Context, live func() []sessionstore.Record) {
	all := live()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	one := all[rand.IntN(len(all))] //nolint:gosec // any will do
	if _, err := w.Find(ctx, one.ID); errors.Is(err, plugins.ErrNotFound) {
		w.restore(ctx, one.ID, live)
	}
}

// restore writes all live sessions, unless the missing one has ended in the meantime. Nothing is put, looked up or
// deleted during that time, so that no session is written after its end.
func (w *sessionWriter) restore(ctx context.Context, missing string, live func() []sessionstore.Record) {
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
