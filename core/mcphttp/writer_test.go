package mcphttp

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// flaky is a store that can be made unavailable.
type flaky struct {
	sessionstore.Store
	down    atomic.Bool
	touches atomic.Int64 // number of calls to Touch
}

func (f *flaky) err() error {
	if f.down.Load() {
		return fmt.Errorf("dial: %w", plugins.ErrUnavailable)
	}
	return nil
}

func (f *flaky) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Put(ctx, rec, ttl)
}

func (f *flaky) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if err := f.err(); err != nil {
		return sessionstore.Record{}, err
	}
	return f.Store.Get(ctx, id)
}

func (f *flaky) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	f.touches.Add(1)
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Touch(ctx, batch)
}

func (f *flaky) Delete(ctx context.Context, id string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Store.Delete(ctx, id)
}

func TestTouchesAreWrittenLaterInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		e := newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		var ids []string
		for range 50 {
			ids = append(ids, admit(t, e, me).ID)
		}
		<-time.After(time.Second + time.Millisecond)
		synctest.Wait()
		before := store.touches.Load()
		for range 100 {
			for _, id := range ids {
				if _, f := e.session(e.root, []byte(id), me); f != nil {
					t.Fatal(f.message)
				}
			}
		}
		if store.touches.Load() != before {
			t.Error("a request waited for the store")
		}
		at := time.Now()
		<-time.After(2 * time.Second)
		synctest.Wait()
		if n := store.touches.Load() - before; n != 1 {
			t.Errorf("5000 touches took %d calls, want 1", n)
		}
		rec, err := store.Get(t.Context(), ids[0])
		if err != nil || rec.LastAccessedAt.Before(at.Truncate(time.Millisecond)) {
			t.Errorf("record %+v %v, want touched at %v", rec, err, at)
		}
	})
}

func TestTouchesSurviveAnUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		e := newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		id := admit(t, e, me).ID
		store.down.Store(true)
		<-time.After(30 * time.Minute)
		e.session(e.root, []byte(id), me)
		at := time.Now()
		<-time.After(10 * time.Second)
		store.down.Store(false)
		<-time.After(2 * time.Second)
		synctest.Wait()
		rec, err := store.Get(t.Context(), id)
		if err != nil || !rec.LastAccessedAt.Equal(at.Truncate(time.Millisecond)) && !rec.LastAccessedAt.Equal(at) {
			t.Errorf("record %+v %v, want touched at %v", rec, err, at)
		}
	})
}

func TestCloseWritesTheLastTouchesAndKeepsTheRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		e := newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		id := admit(t, e, me).ID
		<-time.After(10*time.Second + time.Second/2)
		at := time.Now()
		e.session(e.root, []byte(id), me)
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rec, err := store.Get(t.Context(), id)
		if err != nil || rec.LastAccessedAt.Before(at.Truncate(time.Millisecond)) {
			t.Errorf("%+v %v", rec, err)
		}
	})
}

func TestUseStoreCopiesTheLiveSessions(t *testing.T) {
	r := start(t, nil)
	w := r.join(alice)
	next := memory.New()
	if err := r.endpoint.UseStore(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	rec, err := next.Get(t.Context(), w.session)
	if err != nil || rec.Subject != "alice" {
		t.Errorf("record %+v, %v", rec, err)
	}
	r.say("DELETE", w, "")
	if next.Len() != 0 || r.store.Len() != 1 {
		t.Errorf("the new store should be used from now on: %d and %d records", next.Len(), r.store.Len())
	}
	w = r.join(alice)
	bad := &flaky{Store: memory.New()}
	bad.down.Store(true)
	if err := r.endpoint.UseStore(t.Context(), bad); err == nil {
		t.Error("a store that cannot be written to should not be accepted")
	}
	if _, err := next.Get(t.Context(), w.session); err != nil {
		t.Errorf("the old store should still be in use: %v", err)
	}
}

func TestLiveSessionsAreWrittenAgainAfterTheStoreLostItsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		e := newStillEndpoint(t, store, time.Hour)
		me := caller("alice", "ws_one")
		lose := func(ids ...string) {
			for _, id := range ids {
				if err := store.Store.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}
		ended := admit(t, e, me)
		var ids []string
		for range 20 {
			ids = append(ids, admit(t, e, me).ID)
		}
		e.live.Remove(ended)
		e.closeSession(ended, sessionClosed)
		e.writer.Drop(ended.ID)
		store.down.Store(true) // as during a restart of Redis
		<-time.After(10 * time.Second)
		lose(append(ids, ended.ID)...)
		store.down.Store(false)
		<-time.After(6 * time.Second)
		synctest.Wait()
		for _, id := range ids {
			if rec, err := store.Get(t.Context(), id); err != nil || rec.Subject != "alice" {
				t.Errorf("record %+v, %v", rec, err)
			}
		}
		if _, err := store.Get(t.Context(), ended.ID); err == nil {
			t.Error("a session that has ended was written again")
		}
	})
}
