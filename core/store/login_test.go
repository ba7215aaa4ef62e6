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
	"github.com/ropewalk/ropewalk/core/store/seal"
)

func TestABrowserLoginIsUsedOnceBeforeItExpires(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		put := func(state string, life time.Duration) {
			t.Helper()
			if err := s.PutLogin(t.Context(), state, "192.0.2.1", json.RawMessage(`{"of":"`+state+`"}`), time.Now().Add(life)); err != nil {
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

// If one client starts a flood of logins, only its own logins are dropped, and not other people's.
func TestPendingBrowserLoginsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		rows := database.Insert{Into: `INSERT INTO logins (state, client, record, expires_at)`}
		now := time.Now()
		sealed := s.keys.Load().Seal(json.RawMessage(`{}`), seal.AboutLogin("victim"))
		rows.Add("victim", "192.0.2.1", sealed, database.Millis(now.Add(time.Second*50)))
		for i := range maxLogins - 1 {
			rows.Add(fmt.Sprint(i), "192.0.2.66", "{}", database.Millis(now.Add(time.Minute+time.Duration(i)*time.Millisecond)))
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
		if err := s.PutLogin(t.Context(), "newest", "192.0.2.2", json.RawMessage(`{}`), now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeNotFound, map[string]error{"the oldest of the client with the most": second(s.TakeLogin(t.Context(), "0"))})
		for _, state := range []string{"victim", "newest"} {
			if _, err := s.TakeLogin(t.Context(), state); err != nil {
				t.Errorf("%s: %v", state, err)
			}
		}
	})
}

func TestAUserKeepsTheNewestLogins(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		alice, bob := somebody(t, s, "alice"), somebody(t, s, "bob")
		rows := database.Insert{Into: `INSERT INTO cookies (hash, user_id, key_print, expires_at)`}
		for i := range maxUserLogins {
			rows.Add(fmt.Sprint(i), alice.ID, "", database.Millis(time.Now().Add(time.Hour+time.Duration(i)*time.Second)))
		}
		rows.Add("bob's", bob.ID, "", database.Millis(time.Now().Add(time.Minute)))
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
		if err := s.PutCookie(t.Context(), core.Cookie{Hash: "newest", Identity: core.Identity{User: alice}, ExpiresAt: time.Now().Add(2 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		wantCodes(t, core.CodeNotFound, map[string]error{"the oldest": second(s.Cookie(t.Context(), "0"))})
		for _, hash := range []string{"1", "newest", "bob's"} {
			if _, err := s.Cookie(t.Context(), hash); err != nil {
				t.Errorf("%s: %v", hash, err)
			}
		}
	})
}
