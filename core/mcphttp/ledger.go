package mcphttp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

const (
	storeTimeout  = 5 * time.Second // of one call to the store
	flushInterval = time.Second     // how long a touch is kept back
	flushBatch    = 1000            // touches of one call (the store's contract)
)

// ledger keeps the session store up to date. Opening a session and asking for one wait for the
// store; touches, and removals nobody waits for, are written behind in batches.
type ledger struct {
	ttl time.Duration
	log hclog.Logger

	using sync.RWMutex // held for writing while the store is swapped
	store sessionstore.Store

	mu      sync.Mutex
	touched map[string]time.Time
	dropped map[string]struct{} // gone here, perhaps not yet in the store
	failing bool                // the last flush failed, and the log says so
}

func newLedger(store sessionstore.Store, ttl time.Duration, log hclog.Logger) *ledger {
	return &ledger{ttl: ttl, log: log, store: store, touched: map[string]time.Time{}, dropped: map[string]struct{}{}}
}

// put writes the record of a new session and then calls admit, which makes the session findable.
// No swap of stores comes between the two.
func (l *ledger) put(ctx context.Context, rec sessionstore.Record, admit func()) error {
	l.using.RLock()
	defer l.using.RUnlock()
	if err := l.store.Put(ctx, rec, l.ttl); err != nil {
		return err
	}
	admit()
	return nil
}

// find asks the store. A session that ended here is plugins.ErrNotFound even while the store has
// not heard of it.
func (l *ledger) find(ctx context.Context, id string) (sessionstore.Record, error) {
	l.mu.Lock()
	_, gone := l.dropped[id]
	l.mu.Unlock()
	l.using.RLock()
	defer l.using.RUnlock()
	rec, err := l.store.Get(ctx, id)
	if err == nil && gone {
		return sessionstore.Record{}, plugins.ErrNotFound
	}
	return rec, err
}

// touch notes a use, to be written with the next flush.
func (l *ledger) touch(id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched[id] = now
}

// drop notes an end, to be written with the next flush.
func (l *ledger) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.touched, id)
	l.dropped[id] = struct{}{}
}

// remove deletes a session now; when the store cannot be asked, with a later flush.
func (l *ledger) remove(ctx context.Context, id string) {
	l.drop(id)
	l.delete(ctx, id)
}

func (l *ledger) delete(ctx context.Context, id string) bool {
	l.using.RLock()
	defer l.using.RUnlock()
	if err := l.store.Delete(ctx, id); err != nil {
		return l.outcome(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.dropped, id)
	return true
}

// run flushes until ctx ends.
func (l *ledger) run(ctx context.Context) {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// flush writes what is noted. What fails stays noted.
func (l *ledger) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		batch := l.batch()
		if len(batch) == 0 {
			break
		}
		if !l.write(ctx, batch) {
			return
		}
	}
	for _, id := range l.ends() {
		if !l.delete(ctx, id) {
			return
		}
	}
}

// batch takes up to one call's worth of touches out.
func (l *ledger) batch() []sessionstore.Touch {
	l.mu.Lock()
	defer l.mu.Unlock()
	var batch []sessionstore.Touch
	for id, at := range l.touched {
		if len(batch) == flushBatch {
			break
		}
		batch = append(batch, sessionstore.Touch{ID: id, LastAccessedAt: at, TTL: l.ttl})
		delete(l.touched, id)
	}
	return batch
}

func (l *ledger) write(ctx context.Context, batch []sessionstore.Touch) bool {
	l.using.RLock()
	err := l.store.Touch(ctx, batch)
	l.using.RUnlock()
	if err == nil {
		return l.outcome(nil)
	}
	l.mu.Lock()
	for _, t := range batch {
		_, newer := l.touched[t.ID]
		_, ended := l.dropped[t.ID]
		if !newer && !ended {
			l.touched[t.ID] = t.LastAccessedAt
		}
	}
	l.mu.Unlock()
	return l.outcome(err)
}

func (l *ledger) ends() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]string, 0, len(l.dropped))
	for id := range l.dropped {
		ids = append(ids, id)
	}
	return ids
}

// outcome logs once when the store stops answering and once when it answers again.
func (l *ledger) outcome(err error) bool {
	l.mu.Lock()
	was := l.failing
	l.failing = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !was && !errors.Is(err, context.Canceled):
		l.log.Warn("The session store cannot be written; open sessions go on and are written when it answers again", "error", err)
	case err == nil && was:
		l.log.Info("The session store answers again.")
	}
	return err == nil
}

// swap writes every live record to store and then uses it. Nothing is put, asked or touched in
// between.
func (l *ledger) swap(ctx context.Context, store sessionstore.Store, live func() []sessionstore.Record) error {
	l.using.Lock()
	defer l.using.Unlock()
	for _, rec := range live() {
		if err := store.Put(ctx, rec, l.ttl); err != nil {
			return err
		}
	}
	l.store = store
	return nil
}
