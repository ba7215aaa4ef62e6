package store

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

func TestABrowserLoginIsUsedOnceBeforeItExpires(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		put := func(state string, life time.Duration) {
			t.Helper()
			if err := s.PutLogin(t.Context(), state, json.RawMessage(`{"of":"`+state+`"}`), time.Now().Add(life)); err != nil {
				t.Fatal(err)
			}
		}
		put("one", time.Minute)
		put("late", -time.Millisecond)
		var taking sync.WaitGroup
		var took, none atomic.Int32
		for range 8 {
			taking.Go(func() {
				switch login, err := s.TakeLogin(t.Context(), "one"); {
				case err == nil && string(login) == `{"of":"one"}`:
					took.Add(1)
				case core.CodeOf(err) == core.CodeNotFound:
					none.Add(1)
				default:
					t.Errorf("took %s, %v", login, err)
				}
			})
		}
		taking.Wait()
		if took.Load() != 1 || none.Load() != 7 {
			t.Errorf("%d claimed it, %d found none", took.Load(), none.Load())
		}
		wantCodes(t, core.CodeNotFound, map[string]error{"expired": second(s.TakeLogin(t.Context(), "late")), "unknown": second(s.TakeLogin(t.Context(), "x"))})
	})
}

func TestPendingBrowserLoginsAreBounded(t *testing.T) {
	s := open(t)
	rows := database.Insert{Into: `INSERT INTO logins (state, record, expires_at)`}
	now := time.Now()
	for i := range maxLogins {
		rows.Add(fmt.Sprint(i), "{}", database.Millis(now.Add(time.Minute+time.Duration(i)*time.Millisecond)))
	}
	tx, err := s.db.WritePool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Exec(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := s.PutLogin(t.Context(), "newest", json.RawMessage(`{}`), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantCodes(t, core.CodeNotFound, map[string]error{"the oldest": second(s.TakeLogin(t.Context(), "0"))})
	for _, state := range []string{"1", "newest"} {
		if _, err := s.TakeLogin(t.Context(), state); err != nil {
			t.Errorf("%s: %v", state, err)
		}
	}
}
