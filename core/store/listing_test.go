package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/search"
)

// titles returns the titles of all results of a query, read page by page.
func titles(t *testing.T, s *Store, q core.ConversationQuery) []string {
	t.Helper()
	var all []string
	for {
		page, err := s.Conversations(t.Context(), core.DefaultWorkspaceID, core.Owner().User.ID, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Conversations {
			all = append(all, c.Title)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			if page.TotalCount != len(all) {
				t.Errorf("totalCount is %d, but the pages contain %d", page.TotalCount, len(all))
			}
			return all
		}
	}
}

func TestConversationsAreListedNewestFirstPageByPage(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		var refs []core.ConversationRef
		for i := range 7 {
			refs = append(refs, newConversation(t, s, fmt.Sprint(i)))
			at := database.Millis(time.Now()) - int64(1000-i/2) // some conversations have the same time
			if _, err := s.db.WritePool().ExecContext(t.Context(), `UPDATE conversations SET created_at = $1, updated_at = $1 WHERE title = $2`, at, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		created := titles(t, s, core.ConversationQuery{SortBy: core.SortByCreated, Limit: 2})
		if len(created) != 7 || created[0] != "6" || slices.Max(created[5:]) != "1" {
			t.Errorf("by creation: %v", created)
		}
		grow(t, s, refs[3], []core.Message{said("user", "again")})
		for _, limit := range []int{0, 1, 3, 7, 100} {
			updated := titles(t, s, core.ConversationQuery{Limit: limit})
			want := append([]string{"3"}, slices.DeleteFunc(slices.Clone(created), func(s string) bool { return s == "3" })...)
			if !slices.Equal(updated, want) {
				t.Errorf("limit %d: by update %v, want %v", limit, updated, want)
			}
		}
	})
}

func TestAnInvalidListRequestSaysWhatIsWrong(t *testing.T) {
	s := open(t)
	for range 3 {
		newConversation(t, s, "a b")
	}
	list := func(q core.ConversationQuery) (core.ConversationPage, error) {
		return s.Conversations(t.Context(), core.DefaultWorkspaceID, core.Owner().User.ID, q)
	}
	page, err := list(core.ConversationQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]core.ConversationQuery{
		"limit":         {Limit: 101},
		"limit must be": {Limit: -1},
		"sortBy":        {SortBy: "title"},
		"cursor":        {Cursor: "x"},
		"cursor is not from this list with the same sortBy":            {Cursor: page.NextCursor, SortBy: core.SortByCreated},
		"cursor is not from this list with the same sortBy and search": {Cursor: page.NextCursor, Search: "a"},
	} {
		_, err := list(q)
		if core.CodeOf(err) != core.CodeBadRequest || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want bad_request with %q", q, err, name)
		}
	}
}

func TestASearchFindsConversationsThatContainAllItsWords(t *testing.T) {
	conversations := map[string]string{
		"Budget 2026": "How much for the café in Zürich?",
		"Zurich trip": "Trains from Genève; bring the ÄRGER-list.",
		"untitled":    "Ein Konto_nummer: AB-1234, foo.bar@example.org",
		"日本":          "東京都に行きたい。ｶﾞﾊﾞﾅﾝｽ",
		"English":     "The category of things; cat pictures",
	}
	cases := []struct {
		name, search string
		want         string
	}{
		{"a word", "trains", "Zurich trip"},
		{"case and accents do not matter", "ZURICH", "Budget 2026, Zurich trip"},
		{"a word with its case and accents", "Zürich", "Budget 2026, Zurich trip"},
		{"all of several words, in any order", "zürich cafe", "Budget 2026"},
		{"one word in the title, one in a message", "budget café", "Budget 2026"},
		{"the beginning of the last word", "zur", "Budget 2026, Zurich trip"},
		{"only the last word may be a beginning", "zur café", ""},
		{"a word that is the beginning of another", "cat", "English"},
		{"a complete word before a space", "categ ", ""},
		{"a beginning that is too short", "zu", ""},
		{"a short word", "of", "English"},
		{"a number", "1234", "untitled"},
		{"words with punctuation between them", "ab-1234", "untitled"},
		{"an address", "foo.bar@example.org", "untitled"},
		{"Japanese, a pair", "東京", "日本"},
		{"Japanese, one character", "都", "日本"},
		{"Japanese, a phrase", "東京都に", "日本"},
		{"Japanese, full width for half width", "ガバナンス", "日本"},
		{"Japanese, in the title", "日本", "日本"},
		{"characters that are special in SQL", `%' OR 1=1 -- _`, ""},
		{"punctuation alone finds nothing", "%", ""},
		{"an empty search", "  ", "Budget 2026, English, Zurich trip, untitled, 日本"},
		{"words that never occur together", "trains budget", ""},
		{"a very large number of words", strings.Repeat("cat ", 50), "English"},
	}
	each(t, func(t *testing.T, s *Store) {
		for title, message := range conversations {
			newConversation(t, s, title, said("user", message))
		}
		for _, when := range []string{"as it was written", "packed"} {
			for _, c := range cases {
				t.Run(when+": "+c.name, func(t *testing.T) {
					for _, limit := range []int{0, 1} {
						got := titles(t, s, core.ConversationQuery{Search: c.search, Limit: limit})
						slices.Sort(got)
						if strings.Join(got, ", ") != c.want {
							t.Errorf("limit %d: %q finds %v, want %s", limit, c.search, got, c.want)
						}
					}
				})
			}
			compactAll(t, s)
		}
	})
}

func TestASearchFindsToolResultsAndShowsWhereItFoundAWord(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		answer := said("assistant", "Here it is.")
		answer.Metadata = json.RawMessage(`{"toolCalls":[{"name":"files__read","output":"Invoice 4711:\nthree parrots"},{"output":"` + strings.Repeat("x ", maxResultText/2) + `beyond"}]}`)
		c := newConversation(t, s, "Bills", said("user", "What do I owe?"), answer)
		other := said("user", "no metadata of ours")
		other.Metadata = json.RawMessage(`{"toolCalls":7}`)
		newConversation(t, s, "Other", other)
		for _, when := range []string{"as it was written", "packed"} {
			for query, want := range map[string]string{
				"parrots": "Invoice 4711: three parrots", "invoice": "Invoice 4711: three parrots", "owe": "What do I owe?", "bills": "", "beyond": "none", "bills parrot": "Invoice 4711: three parrots",
			} {
				page, err := s.Conversations(t.Context(), core.DefaultWorkspaceID, core.Owner().User.ID, core.ConversationQuery{Search: query})
				got := "none"
				if len(page.Conversations) == 1 {
					got = page.Conversations[0].Passage
				}
				if err != nil || got != want {
					t.Errorf("%s: %q shows %q, %v, want %q", when, query, got, err, want)
				}
			}
			compactAll(t, s)
		}
		if err := s.DeleteConversation(t.Context(), core.ConversationRef{Workspace: core.DefaultWorkspaceID, Owner: core.Owner().User.ID, ID: c.ID}); err != nil {
			t.Fatal(err)
		}
		if got := titles(t, s, core.ConversationQuery{Search: "parrots"}); len(got) != 0 {
			t.Errorf("after it was deleted: %v", got)
		}
	})
}

// manyFrom is the number of conversations that must contain a word for it to count as common, after a call to
// searchAsAmongMany.
const manyFrom = 400

// searchAsAmongMany lowers the limits at which searches use the methods for many conversations, to a tenth of their
// usual values.
func searchAsAmongMany(s *Store) {
	limits := search.DefaultLimits()
	s.index = search.New(s.db, s.log, search.Limits{ByNumber: manyFrom, Scan: limits.Scan / 10, Later: limits.Later / 10})
}

// A search for a common word uses a different method than a search for a rare word. Both must find the same
// conversations, with most of the words compacted.
func TestACommonWordFindsTheSameAsARareOne(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		searchAsAmongMany(s)
		const n, single = 2*manyFrom + 50, 20
		texts := func(i int) []string {
			age := "new"
			if i < n*3/5 {
				age = "old"
			}
			return []string{fmt.Sprint(i), fmt.Sprintf("common commonly every%d rare%d %s", i%2, i%100, age)}
		}
		imported(t, s, n-single, texts)
		seed(t, s, single, func(i int) []string { return texts(n - single + i) })
		for search, want := range map[string]int{
			"common": n, "commo": n, "every1": n / 2, "common every1": n / 2, "every0 every1": 0, "every0 common ever": n / 2,
			"rare7 common": n/100 + 1, "rare": n, "common nowhere": 0, "old": n * 3 / 5, "new": n - n*3/5, "old common new": 0,
		} {
			if got := titles(t, s, core.ConversationQuery{Search: search, Limit: 10}); len(got) != want || !slices.IsSortedFunc(got, newestFirst) {
				t.Errorf("%q finds %d, want %d", search, len(got), want)
			}
		}
	})
}

// The list is in a different order than the numbers of the conversations.
func TestAWordThatWasCommonLongAgoIsListedInTheRequestedOrder(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		searchAsAmongMany(s)
		const n, old = 2*manyFrom + 50, manyFrom + 50
		imported(t, s, n, func(i int) []string {
			if i < old || i == n-10 {
				return []string{fmt.Sprint(i), "common once"}
			}
			return []string{fmt.Sprint(i), "common"}
		})
		for name, change := range map[string]string{
			"in the order of creation":         `UPDATE conversations SET updated_at = 1000 + number`,
			"some were changed later":          `UPDATE conversations SET updated_at = 1000 + number + CASE WHEN number % 53 = 0 THEN 600 ELSE 0 END`,
			"many at the same moment":          `UPDATE conversations SET updated_at = 1000 + number / 4`,
			"in random order":                  `UPDATE conversations SET updated_at = 1000 + (number * 7919) % 853`,
			"in the reverse order of creation": `UPDATE conversations SET updated_at = 20000 - number`,
		} {
			t.Run(name, func(t *testing.T) {
				if _, err := s.db.WritePool().ExecContext(t.Context(), change); err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, title := range titles(t, s, core.ConversationQuery{Limit: 100}) {
					if i := position(title); i < old || i == n-10 {
						want = append(want, title)
					}
				}
				if got := titles(t, s, core.ConversationQuery{Search: "once", Limit: 10}); !slices.Equal(got, want) {
					t.Errorf("%d, which differ in order or number from the %d in the list", len(got), len(want))
				}
				page, err := s.Conversations(t.Context(), core.DefaultWorkspaceID, core.Owner().User.ID, core.ConversationQuery{Search: "once", Limit: 5})
				if err != nil || len(page.Conversations) != 5 || page.Conversations[4].Title != want[4] || page.Conversations[0].Title != want[0] {
					t.Errorf("%+v, %v, want %v", page, err, want[:5])
				}
			})
		}
	})
}

func position(title string) (i int) {
	_, _ = fmt.Sscan(title, &i)
	return i
}

func newestFirst(a, b string) int {
	return position(b) - position(a)
}
