package table

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
)

// talkers are the numbers of conversations to write to at the same time.
var talkers = []int{1, 16}

// writes measures how many messages per second are stored. An append counts when the store has acknowledged it,
// which means that it is on disk. For comparison, each row also shows how many bare writes per second the disk
// can sync.
func (b *bench) writes(ctx context.Context) error {
	places, err := b.places(ctx, "writes")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(places[0].options.Path), 0o700); err != nil {
		return err
	}
	var there []place
	var stores []*store.Store
	for _, p := range places {
		if p.missing != nil {
			b.addSkipped("message appends, "+p.name, p.missing)
			continue
		}
		st, err := store.Open(ctx, p.options)
		if err != nil {
			return err
		}
		defer func() { _ = st.Close() }()
		there, stores = append(there, p), append(stores, st)
	}
	for _, c := range talkers {
		if err := b.growing(ctx, there, stores, c); err != nil {
			return err
		}
	}
	return nil
}

// growing adds the rows for writing to the given number of conversations at the same time.
func (b *bench) growing(ctx context.Context, places []place, stores []*store.Store, conversations int) error {
	rates, bare := make([][]float64, len(stores)), []float64(nil)
	for round := range b.rounds + 1 { // the first round warms everything up
		for i, st := range stores {
			rate, err := grow(ctx, st, conversations, b.span)
			if err != nil {
				return fmt.Errorf("%s: %w", places[i].name, err)
			}
			if round > 0 {
				rates[i] = append(rates[i], rate)
			}
		}
		synced, err := bareSyncs(b.dir, b.span/4)
		if err != nil {
			return err
		}
		bare = append(bare, synced)
	}
	for i, p := range places {
		what := fmt.Sprintf("message appends, %s, %d at a time", p.name, conversations)
		_, _ = fmt.Fprintf(b.o.Log, "%-61s %9.0f/s\n", what, median(rates[i]))
		b.statement(what, fmt.Sprintf("%.0f/s", median(rates[i])), fmt.Sprintf("%.0f/s (bare write and fsync)", median(bare)))
	}
	return nil
}

// grow appends messages of 40 words to the given number of conversations, and returns how many per second were
// acknowledged.
func grow(ctx context.Context, st *store.Store, conversations int, span time.Duration) (float64, error) {
	owner := core.Owner().User.ID
	var refs []core.ConversationRef
	for range conversations {
		c, err := st.CreateConversation(ctx, core.Conversation{Workspace: workspace, Owner: owner})
		if err != nil {
			return 0, err
		}
		refs = append(refs, core.ConversationRef{Workspace: workspace, Owner: owner, ID: c.ID})
	}
	var kept atomic.Int64
	errs := make([]error, conversations)
	begin := time.Now()
	var wg sync.WaitGroup
	for i, ref := range refs {
		wg.Go(func() {
			w := newWriter()
			for time.Since(begin) < span && errs[i] == nil {
				_, errs[i] = st.AppendMessages(ctx, ref, []core.Message{{Role: "user", Content: w.words(40)}})
				kept.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(kept.Load()) / time.Since(begin).Seconds(), errors.Join(errs...)
}

// bareSyncs returns how many times per second the disk can sync a page. The writes do not make the file grow,
// like most writes to the databases' logs.
func bareSyncs(dir string, span time.Duration) (rate float64, err error) {
	f, err := os.CreateTemp(dir, "bare-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	const pages = 1_000
	if _, err := f.Write(make([]byte, pages*len(page))); err != nil {
		return 0, err
	}
	n, begin := int64(-1), time.Now() // the first write syncs the file created above
	for ; time.Since(begin) < span; n++ {
		if _, err := f.WriteAt(page, max(n, 0)%pages*int64(len(page))); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		if n < 0 {
			begin = time.Now()
		}
	}
	return float64(max(n, 0)) / time.Since(begin).Seconds(), nil
}
