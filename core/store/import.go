package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/search"
)

// Transcript is a conversation from another system. Its cost is unknown.
type Transcript struct {
	Title    string
	Messages []core.Message // a missing time means now
}

// ImportConversations stores conversations of owner in workspace, all of them or none. Owner and workspace must exist.
// It is much faster to import a few thousand conversations at a time than one by one. Their words are compacted in the
// search index from the start.
func (s *Store) ImportConversations(ctx context.Context, workspace, owner string, all []Transcript) error {
	return s.db.UpdateLong(ctx, "importing conversations", func(ctx context.Context, tx *sql.Tx) error {
		collection, err := ensureCollection(ctx, tx, workspace, owner)
		if err != nil {
			return err
		}
		var number int64
		if err := tx.QueryRowContext(ctx, `UPDATE collections SET conversations = conversations + $2, last_number = last_number + $2
			WHERE id = $1 RETURNING last_number - $2`, collection, len(all)).Scan(&number); err != nil {
			return err
		}
		if err := s.allowConversation(ctx, tx, collection); err != nil {
			return err
		}
		conversations := database.Insert{Into: `INSERT INTO conversations (id, collection, number, title, last_model, created_at, updated_at,
			message_count, preview, input_tokens, output_tokens, bytes)`}
		messages := database.Insert{Into: intoMessages}
		var words search.Bulk
		for _, t := range all {
			number++
			key, imported, title := randomKey(), prepare(t.Messages, time.Now()), clean(t.Title)
			first, last := core.Message{Timestamp: time.Now()}, core.Message{}
			if n := len(imported); n > 0 {
				first, last = imported[0].Message, imported[n-1].Message
			}
			conversations.Add(key, collection, number, title, "", database.Millis(first.Timestamp), database.Millis(cmp.Or(last.Timestamp, first.Timestamp)),
				len(imported), preview(imported), 0, 0, sizeOf(imported)+int64(len(title)))
			for i, m := range imported {
				messages.Add(m.row(key, i)...)
			}
			words.Add(number, append(contents(imported), title)...)
		}
		if err := conversations.Exec(ctx, tx); err != nil {
			return err
		}
		if err := messages.Exec(ctx, tx); err != nil {
			return err
		}
		if err := s.allowBytes(ctx, tx, collection); err != nil {
			return err
		}
		return s.index.AddBulk(ctx, tx, collection, words)
	})
}
