package store

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

// bothBench runs a benchmark on an SQLite file and on PostgreSQL.
func bothBench(b *testing.B, bench func(b *testing.B, s *Store)) {
	b.Run("sqlite", func(b *testing.B) {
		s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "ropewalk.db")})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		bench(b, s)
	})
	b.Run("postgres", func(b *testing.B) { bench(b, openURL(b, newDatabase(b))) })
}

// One user has 100,000 conversations of two messages each. The benchmark measures the time for a whole page with its
// total. The target is 20 ms.
func BenchmarkConversations(b *testing.B) {
	const n = 100_000
	bothBench(b, func(b *testing.B, s *Store) {
		vocabulary := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 8, 50_000)
		words := func(n int) string {
			var text strings.Builder
			for range n {
				fmt.Fprintf(&text, "w%d ", vocabulary.Uint64())
			}
			return text.String()
		}
		imported(b, s, n, func(i int) []string {
			return []string{words(3), words(8) + fmt.Sprintf("every%d", i%1000), words(12) + "always"}
		})
		owner := core.Owner().User.ID
		first, err := s.Conversations(b.Context(), core.DefaultWorkspaceID, owner, core.ConversationQuery{Limit: 100})
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name string
			q    core.ConversationQuery
		}{
			{"first page", core.ConversationQuery{}},
			{"next page", core.ConversationQuery{Cursor: first.NextCursor}},
			{"by creation", core.ConversationQuery{SortBy: core.SortByCreated, Limit: 100}},
			{"search for a word in 100", core.ConversationQuery{Search: "every7 "}},
			{"search for two words", core.ConversationQuery{Search: "every7 w1 "}},
			{"search for a word in a third", core.ConversationQuery{Search: "w5 "}},
			{"search for the beginning of a word", core.ConversationQuery{Search: "every77"}},
			{"search for a word in all", core.ConversationQuery{Search: "always "}},
			{"search for the beginning of a word in all", core.ConversationQuery{Search: "alw"}},
			{"search for two common words", core.ConversationQuery{Search: "always w2 "}},
			{"search for a common word and the beginning of another", core.ConversationQuery{Search: "always w12"}},
			{"search for four common words", core.ConversationQuery{Search: "always w2 w1 w0 "}},
			{"search for a word in one of 26", core.ConversationQuery{Search: "w31 "}},
			{"search without a result", core.ConversationQuery{Search: "nowhere"}},
		} {
			b.Run(c.name, func(b *testing.B) {
				total := 0
				for b.Loop() {
					page, err := s.Conversations(b.Context(), core.DefaultWorkspaceID, owner, c.q)
					if err != nil {
						b.Fatal(err)
					}
					total = page.TotalCount
				}
				b.ReportMetric(float64(total), "found")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/op")
			})
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	bothBench(b, func(b *testing.B, s *Store) {
		ref := newConversation(b, s, "a title")
		turn := []core.Message{said("user", strings.Repeat("what a question ", 5)), said("assistant", strings.Repeat("an answer of some words ", 50))}
		for b.Loop() {
			grow(b, s, ref, turn, core.Usage{Model: "m", InputTokens: 1000, OutputTokens: 100})
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	})
}
