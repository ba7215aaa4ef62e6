package sessionstoretest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

// soleStore stands for a store whose backend one process at a time has. What is not in saved when its
// process is killed is lost.
type soleStore struct {
	mu    sync.Mutex
	now   *memory.Store
	saved map[string]sessionstore.Record
	lazy  string // the kind of write that is acknowledged before it is saved
}

func (s *soleStore) write(kind, id string, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := do(); err != nil || kind == s.lazy {
		return err
	}
	rec, err := s.now.Get(context.Background(), id)
	if err != nil {
		delete(s.saved, id)
		return nil
	}
	s.saved[id] = rec
	return nil
}

func (s *soleStore) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	return s.write("put", rec.ID, func() error { return s.now.Put(ctx, rec, ttl) })
}

func (s *soleStore) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Get(ctx, id)
}

func (s *soleStore) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	for _, touch := range batch {
		if err := s.write("touch", touch.ID, func() error { return s.now.Touch(ctx, []sessionstore.Touch{touch}) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *soleStore) Delete(ctx context.Context, id string) error {
	return s.write("delete", id, func() error { return s.now.Delete(ctx, id) })
}

// restart is kill -9, and the next process.
func (s *soleStore) restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = memory.New()
	var err error
	for _, rec := range s.saved {
		err = errors.Join(err, s.now.Put(ctx, rec, time.Hour))
	}
	return err
}

func TestAnExclusiveStoreIsKilledToSeeWhetherItsWritesSurvive(t *testing.T) {
	for lazy, name := range map[string]string{
		"": "", "put": "a put that was acknowledged survives kill -9", "touch": "a touch that was acknowledged survives kill -9", "delete": "a delete that was acknowledged survives kill -9",
	} {
		store := &soleStore{now: memory.New(), saved: map[string]sessionstore.Record{}, lazy: lazy}
		checks := slices.DeleteFunc(sessionstoretest.Checks(), func(c sessionstoretest.Check) bool {
			return name != "" && c.Name != name || name == "" && c.Contract != `survives the end of the process if the plugin has the capability "durable"`
		})
		results := kit.Run(t.Context(), checks, sessionstoretest.Subject{Store: store, Durable: true, Exclusive: true, Restart: store.restart})
		if failed := len(kit.Failed(results)); len(results) == 0 || (failed == 1) != (name != "") {
			t.Errorf("a store that is lazy with each %q: %d of %d checks failed", lazy, failed, len(results))
		}
	}
}
