package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// Transcript is a conversation that was had elsewhere. What it cost there is not known here.
type Transcript struct {
	Title    string
	Messages []core.Message // those without a time are of now
}

// ImportConversations keeps conversations of owner in workspace, both of which must exist: all of
// them or none. A few thousand at a time are kept much faster than one by one, and are searched at
// once as fast as they will ever be.
func (s *Store) ImportConversations(ctx context.Context, workspace, owner string, all []Transcript) error {
	return s.change(ctx, "importing conversations", func(tx *sql.Tx) error {
		shelf, err := ensureShelf(ctx, tx, workspace, owner)
		if err != nil {
			return err
		}
		var number int64
		if err := tx.QueryRowContext(ctx, `UPDATE shelves SET conversations = conversations + $2, numbered = numbered + $2
			WHERE id = $1 RETURNING numbered - $2`, shelf, len(all)).Scan(&number); err != nil {
			return err
		}
		conversations := inserting{into: `INSERT INTO conversations (id, shelf, number, title, last_model, created_at, updated_at,
			message_count, preview, input_tokens, output_tokens)`}
		messages := inserting{into: intoMessages}
		words := postings{}
		for _, t := range all {
			number++
			key, said, title := randomKey(), kept(t.Messages, time.Now()), clean(t.Title)
			first, last := core.Message{Timestamp: time.Now()}, core.Message{}
			if n := len(said); n > 0 {
				first, last = said[0].Message, said[n-1].Message
			}
			conversations.add(key, shelf, number, title, "", millis(first.Timestamp), millis(cmp.Or(last.Timestamp, first.Timestamp)),
				len(said), preview(said), 0, 0)
			for i, m := range said {
				messages.add(m.row(key, i)...)
			}
			for _, word := range distinct(append(contents(said), title)...) {
				words.add(word, number)
			}
		}
		if err := conversations.run(ctx, tx); err != nil {
			return err
		}
		if err := messages.run(ctx, tx); err != nil {
			return err
		}
		return s.dialect.pack(ctx, tx, shelf, words)
	})
}
