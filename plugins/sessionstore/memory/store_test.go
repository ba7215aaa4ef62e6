package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/kit"
	"github.com/ropewalk/ropewalk/plugins/plugintest"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/sessionstoretest"
)

func TestTheContractDirect(t *testing.T) {
	t.Parallel()
	plugintest.JudgeIn(t, plugintest.Bubble, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), func(*testing.T) sessionstoretest.Subject {
		return sessionstoretest.Subject{Store: memory.New()}
	})
}

func TestTheContractOverTheWire(t *testing.T) {
	t.Parallel()
	conn := plugintest.Configured(t, sessionstore.Plugin(memory.New()), "")
	subject, err := sessionstoretest.Connected(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Judge(t, sessionstoretest.Properties(), plugintest.Trial(kit.Quick), subject)
}

func TestALifetimeIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		rec := sessionstore.Record{ID: "one"}
		if err := store.Put(t.Context(), rec, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		if _, err := store.Get(t.Context(), "one"); err != nil {
			t.Errorf("a nanosecond before the end: %v", err)
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		if _, err := store.Get(t.Context(), "one"); !errors.Is(err, plugins.ErrNotFound) {
			t.Errorf("at the end: got %v, want not found", err)
		}
	})
}

func TestExpiredSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		for i := range 1000 {
			rec := sessionstore.Record{ID: fmt.Sprint(i)}
			if err := store.Put(t.Context(), rec, time.Duration(1+i%10)*time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		for minute := 1; minute <= 10; minute++ {
			time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
			if want := 1000 - 100*minute; store.Len() != want {
				t.Errorf("after %d minutes %d sessions are remembered, want %d", minute, store.Len(), want)
			}
		}
	})
}

// TestLifetimesAreIndependentOfEachOther compares the store with a map, using a bubble's fake clock.
func TestLifetimesAreIndependentOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ends := memory.New(), map[string]time.Time{}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same steps each time
		for step := range 5000 {
			id, ttl := fmt.Sprint(random.IntN(200)), time.Duration(1+random.IntN(300))*time.Second
			var err error
			switch random.IntN(4) {
			case 0:
				err = store.Put(t.Context(), sessionstore.Record{ID: id}, ttl)
				ends[id] = time.Now().Add(ttl)
			case 1:
				if ends[id].After(time.Now()) {
					ends[id] = time.Now().Add(ttl)
				}
				err = store.Touch(t.Context(), []sessionstore.Touch{{ID: id, TTL: ttl}})
			case 2:
				delete(ends, id)
				err = store.Delete(t.Context(), id)
			default:
				time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
			}
			if err != nil {
				t.Fatal(err)
			}
			alive := 0
			for id, end := range ends {
				rec, err := store.Get(t.Context(), id)
				switch {
				case end.After(time.Now()) && (err != nil || !rec.ExpiresAt.Equal(end)):
					t.Fatalf("step %d: the session %s ends at %s; got %s, %v", step, id, end, rec.ExpiresAt, err)
				case end.After(time.Now()):
					alive++
				case !errors.Is(err, plugins.ErrNotFound):
					t.Fatalf("step %d: the session %s ended at %s; got %v", step, id, end, err)
				}
			}
			if store.Len() != alive {
				t.Fatalf("step %d: %d sessions are remembered, want %d", step, store.Len(), alive)
			}
		}
	})
}
