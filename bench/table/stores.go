package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
)

// place is one of the two databases that can store the state.
type place struct {
	name    string
	home    string // the name of the service that uses it
	options store.Options
	storage map[string]any // the storage section of the service
	missing error          // why it is missing; nil if it is available
}

// places starts the databases. It skips PostgreSQL if that is not installed.
func (b *bench) places(ctx context.Context, part string) ([]place, error) {
	sqlite := place{name: "SQLite", home: part + " in SQLite"}
	sqlite.options = store.Options{Path: filepath.Join(b.dir, sqlite.home, "ropewalk.db"), Logger: b.log}
	url, err := b.postgres(ctx)
	if err != nil && !errors.Is(err, errNoPostgres) {
		return nil, err
	}
	return []place{sqlite, {
		name: "PostgreSQL", home: part + " in PostgreSQL", missing: err,
		options: store.Options{URL: core.Secret(url), Logger: b.log}, storage: map[string]any{"url": url},
	}}, nil
}

// writer generates text with word frequencies like those of natural language.
type writer struct{ vocabulary *rand.Zipf }

func newWriter() writer {
	return writer{rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 8, 50_000)} //nolint:gosec // the same text in every run
}

func (w writer) words(n int) string {
	var text strings.Builder
	for range n {
		fmt.Fprintf(&text, "w%d ", w.vocabulary.Uint64())
	}
	return text.String()
}

// fill creates conversations with two messages each, one second apart. The word "always" is in every
// conversation, "often" in four out of five, "formerly" in the oldest tenth, and "seldom<nnn>" in one out of a
// thousand.
func (b *bench) fill(ctx context.Context, p place, conversations int) error {
	st, err := store.Open(ctx, p.options)
	if err != nil {
		return err
	}
	w, begin := newWriter(), time.Now().Add(-time.Duration(conversations)*time.Second)
	const batch = 5_000
	for from := 0; from < conversations && err == nil; from += batch {
		some := make([]store.Transcript, min(batch, conversations-from))
		for i := range some {
			n := from + i
			question := core.Message{Role: "user", Content: w.words(8) + fmt.Sprintf("always seldom%03d", n%1000), Timestamp: begin.Add(time.Duration(n) * time.Second)}
			answer := core.Message{Role: "assistant", Content: w.words(12), Timestamp: question.Timestamp}
			if n%5 > 0 {
				answer.Content += "often "
			}
			if n < conversations/10 {
				answer.Content += "formerly"
			}
			some[i] = store.Transcript{Title: w.words(3), Messages: []core.Message{question, answer}}
		}
		err = st.ImportConversations(ctx, workspace, core.Owner().User.ID, some)
	}
	return errors.Join(err, st.Close())
}
