package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// compactAll compacts the words of all collections.
func compactAll(t testing.TB, s *Store) {
	t.Helper()
	var collections []int64
	err := s.db.View(t.Context(), "listing collections", func(_ context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(t.Context(), `SELECT id FROM collections`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var collection int64
			if err := rows.Scan(&collection); err != nil {
				return err
			}
			collections = append(collections, collection)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, collection := range collections {
		for more := true; more; {
			if more, err = s.index.Compact(t.Context(), collection); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func count(t testing.TB, s *Store, query string, args ...any) (n int) {
	t.Helper()
	if err := s.db.ReadPool().QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func found(t *testing.T, s *Store, search string) string {
	t.Helper()
	all := titles(t, s, core.ConversationQuery{Search: search})
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestAfterCompactionASearchSeesEveryChange(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		// The next numbers are on two pages.
		first := newConversation(t, s, "first", said("user", "apple pear"))
		if _, err := s.db.WritePool().ExecContext(t.Context(), `UPDATE collections SET last_number = 65533`); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			newConversation(t, s, fmt.Sprintf("more%d", i), said("user", "apple"))
		}
		second := newConversation(t, s, "second", said("user", "apple password123 plum"), said("assistant", "second thoughts"))
		compactAll(t, s)
		if n := count(t, s, `SELECT COUNT(*) FROM words`); n != 0 {
			t.Fatalf("%d words are not compacted", n)
		}
		if n := count(t, s, `SELECT COUNT(*) FROM word_sets WHERE word = $1`, []byte("apple")); n != 2 {
			t.Fatalf("a word of two pages has %d rows", n)
		}
		want := func(search, titles string) {
			t.Helper()
			if got := found(t, s, search); got != titles {
				t.Errorf("%q finds %s, want %s", search, got, titles)
			}
		}
		want("apple ", "first, more0, more1, more2, more3, more4, second")
		grow(t, s, first, []core.Message{said("assistant", "plum, and apple again")})
		want("plum apple ", "first, second")
		compactAll(t, s)
		want("plum apple ", "first, second")

		title := "third"
		if _, err := s.UpdateConversation(t.Context(), second, core.ConversationPatch{Title: &title}); err != nil {
			t.Fatal(err)
		}
		want("second ", "third") // a message contains it
		want("third ", "third")
		title = "fourth"
		if _, err := s.UpdateConversation(t.Context(), second, core.ConversationPatch{Title: &title}); err != nil {
			t.Fatal(err)
		}
		want("third ", "")
		compactAll(t, s)
		if _, err := s.ForkConversation(t.Context(), second, 1); err != nil {
			t.Fatal(err)
		}
		want("password123 ", "fourth, fourth")
		if err := s.DeleteConversation(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		want("password123 fourth ", "fourth")
		want("thoughts ", "")
	})
}

func TestNoWordsOfADeletedConversationRemain(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		newConversation(t, s, "a", said("user", "common"))
		ref := newConversation(t, s, "b", said("user", "common password123"))
		compactAll(t, s)
		grow(t, s, ref, []core.Message{said("user", "password456")})
		if err := s.DeleteConversation(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"words", "word_sets"} {
			if n := count(t, s, `SELECT COUNT(*) FROM `+table+` WHERE word <> $1 AND word <> $2`, []byte("a"), []byte("common")); n != 0 {
				t.Errorf("%s has %d words that no message contains", table, n)
			}
		}
		if got := found(t, s, "common "); got != "a" {
			t.Errorf("it is still found: %s", got)
		}
	})
}

func TestWordsAreCompactedWhilePeopleChat(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		newConversation(t, s, "kept", said("user", "hello"))
		done := make(chan struct{})
		var compactions sync.WaitGroup
		for range 2 { // as if two servers on one database compacted at the same time
			compactions.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						compactAll(t, s)
					}
				}
			})
		}
		var wg sync.WaitGroup
		for person := range 4 {
			wg.Go(func() {
				for i := range 12 {
					ref := newConversation(t, s, fmt.Sprintf("title %d %d", person, i), said("user", "hello again"))
					grow(t, s, ref, []core.Message{said("assistant", fmt.Sprintf("hello number%d", i))})
					title := "renamed"
					if _, err := s.UpdateConversation(t.Context(), ref, core.ConversationPatch{Title: &title}); err != nil {
						t.Error(err)
					}
					if i%3 == 0 {
						if err := s.DeleteConversation(t.Context(), ref); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		close(done)
		compactions.Wait()
		for range 2 {
			for search, want := range map[string]int{"hello ": 33, "again hello renamed ": 32, "title ": 0, "number1 ": 4, "number3 ": 0, "number": 32} {
				if got := titles(t, s, core.ConversationQuery{Search: search}); len(got) != want {
					t.Errorf("%q finds %d, want %d", search, len(got), want)
				}
			}
			compactAll(t, s)
		}
	})
}

func TestASearchThroughManyUncompactedWordsCompactsThem(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		seed(t, s, 1_000, func(i int) []string { return []string{fmt.Sprint(i), "hello"} })
		if got := len(titles(t, s, core.ConversationQuery{Search: "hello", Limit: 100})); got != 1_000 {
			t.Fatalf("found %d", got)
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for count(t, s, `SELECT COUNT(*) FROM words`) > 0 {
			select {
			case <-t.Context().Done():
				t.Fatal("nothing was compacted")
			case <-tick.C:
			}
		}
		if got := len(titles(t, s, core.ConversationQuery{Search: "hello", Limit: 100})); got != 1_000 {
			t.Fatalf("after compaction, %d are found", got)
		}
	})
}
